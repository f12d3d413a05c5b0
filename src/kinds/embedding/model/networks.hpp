// SPDX-License-Identifier: Apache-2.0
// The dense part of a model for some queries at a time: bottom network, products of pairs, top
// network, sigmoid.
//
// Thread: one at a time. Items outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kinds/embedding/model/model_weights.hpp"

namespace espalier::embedding {

/// Queries of one request, whose rows were reduced.
struct DenseItem {
  std::uint32_t queries = 0;
  const float* dense = nullptr;   // query by query
  const float* pooled = nullptr;  // table by table, of each query by query
  float* ranks = nullptr;         // the results
};

class Networks {
 public:
  /// Queries of a step, of several items if they are short: each step reads the weights from memory
  /// once.
  static constexpr std::uint32_t kStepQueries = 32;

  /// Allocates all memory of the steps: two rows of the widest layer for each query of a step.
  /// Errors: std::bad_alloc.
  Networks(const ModelWeights& weights, std::uint32_t tables, std::span<const DenseItem> items);

  /// Ranks up to kStepQueries queries; returns whether there are more.
  /// Cost: two operations for each weight and query.
  bool step() noexcept;

 private:
  /// A query in its item.
  struct Place {
    const DenseItem* item;
    std::uint32_t number;  // in it
  };
  void take_some();
  void run(std::span<const ModelWeights::Layer> layers);
  void add_products();
  void put_out();

  const ModelWeights& weights_;
  const std::uint32_t tables_;
  const std::span<const DenseItem> items_;
  std::size_t item_ = 0;  // the next query
  std::uint32_t number_ = 0;
  std::vector<Place> some_;
  std::vector<float> now_;  // output of the layer that was run last
  std::vector<float> next_;
  std::size_t stride_ = 0;  // of now_
};

}  // namespace espalier::embedding
