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

/// Queries that came together, of which the rows were reduced.
struct DenseItem {
  std::uint32_t queries = 0;
  const float* dense = nullptr;   // of one query behind the other
  const float* pooled = nullptr;  // of one table behind the other, of each of one query behind it
  float* ranks = nullptr;         // to be filled in
};

class Networks {
 public:
  /// Queries of a step, of several items if they are short: as weights come out of memory once for
  /// each step.
  static constexpr std::uint32_t kStepQueries = 32;

  /// Takes all memory that steps need: two rows of the widest layer for each query of a step.
  /// Errors: std::bad_alloc.
  Networks(const ModelWeights& weights, std::uint32_t tables, std::span<const DenseItem> items);

  /// Ranks up to kStepQueries queries; returns whether there are others.
  /// Cost: two operations for each weight and query.
  bool step() noexcept;

 private:
  /// A query, where it came.
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
  std::vector<float> now_;  // what the layer that was run last put out
  std::vector<float> next_;
  std::size_t stride_ = 0;  // of now_
};

}  // namespace espalier::embedding
