// SPDX-License-Identifier: Apache-2.0
// Ranking models: the networks of a recommendation model (DLRM), run beside the embedding tables
// that they read.
//
//   auto model = store.create_ranking_model("ads", file);   // bytes: docs/formats/model.md
//   auto ranks = model->infer_text("0.5 -1 3 | 17 99 | 4\n");   // a query a line
//
// A query has dense features (numbers), and ids of rows of each of the model's embedding tables.
// The bottom network turns the features into a vector. The rows of each table are reduced to one.
// The top network computes a rank, 0 to 1, from the first vector and the inner products of each two
// of all vectors. Results are single precision: in a layer of n inputs, each is within (n + 1) /
// 2^23 of the sum of the magnitudes of its products.
//
// A model looks its tables up by name at each request, in its store: a table that was dropped and
// created anew is used as it is then. A client that may read a model need not have the right to
// read its tables.
//
// Errors of all calls: forked, not_found (the model was dropped), on a node connection_lost and
// not_permitted.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "espalier/embedding_types.hpp"
#include "espalier/map.hpp"
#include "espalier/table_error.hpp"

namespace espalier {

namespace client {
class RankingModelImpl;
}  // namespace client

/// Sizes of a model's inputs and outputs.
struct RankingShape {
  std::uint32_t dense = 0;      ///< dense features of a query
  std::uint32_t tables = 0;     ///< embedding tables
  std::uint32_t dimension = 0;  ///< floats in one of their rows
  std::uint32_t outputs = 0;    ///< floats for each query

  friend bool operator==(const RankingShape&, const RankingShape&) = default;
};

/// Queries in the caller's memory.
struct RankingQueries {
  std::span<const float> dense;           ///< query after query
  std::span<const EmbeddingBags> tables;  ///< for each table a bag per query; no weights
};

/// A handle; copies name the same model.
/// Thread: all calls from any number of threads.
class RankingModel {
 public:
  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] const RankingShape& shape() const;

  /// Ranks queries, up to 1024 at a time in 1 MiB, whose rows come to 16 MiB at most; returns
  /// shape().outputs floats of each, query after query.
  /// Cost: the cache lines of each row, and two operations for each weight and query; on a node one
  /// round trip, in which queries are batched for up to 100 us with those of others.
  /// Errors: invalid_argument, in words (an id without a row; malformed bags or features; a table
  /// whose rows have another dimension; too many queries), not_found (also if an embedding table of
  /// the model is missing; the words name it), out_of_memory (on a node also: a client's requests
  /// in flight exceed 64 MiB of rows).
  [[nodiscard]] TableResult<std::vector<float>> infer(const RankingQueries& queries) const;
  /// The same from text, a query per line: dense features, then the ids of each table. Spaces
  /// separate numbers; bars separate the features and the tables.
  /// Errors: besides, words that name the line.
  [[nodiscard]] TableResult<std::vector<float>> infer_text(std::string_view queries) const;

 private:
  friend class Store;
  friend class client::RankingModelImpl;
  explicit RankingModel(std::shared_ptr<client::RankingModelImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<client::RankingModelImpl> impl_;
};

}  // namespace espalier
