// SPDX-License-Identifier: Apache-2.0
// Ranking models: the networks of a recommendation model, run beside the embedding tables that they
// read, as DLRM has them.
//
//   auto model = store.create_ranking_model("ads", file);   // bytes: docs/formats/model.md
//   auto ranks = model->infer_text("0.5 -1 3 | 17 99 | 4\n");   // a query a line
//
// A query has dense features, which are numbers, and ids of rows of each of the model's embedding
// tables. The bottom network makes a vector of the features; of each table the rows are reduced to
// one; the top network makes a rank, 0 to 1, of the first vector and of the inner product of each
// two of all of them. Results are those of single precision: of a layer of n inputs, each is within
// (n + 1) / 2^23 of the sum of the magnitudes of its products.
//
// A model finds its tables by name with each request, among the objects of its store: a table that
// is dropped and made anew is used as it is then. Who may read a model need not be permitted to
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

/// What a model takes and makes.
struct RankingShape {
  std::uint32_t dense = 0;      ///< features of a query that are numbers
  std::uint32_t tables = 0;     ///< embedding tables
  std::uint32_t dimension = 0;  ///< of their rows
  std::uint32_t outputs = 0;    ///< floats for each query

  friend bool operator==(const RankingShape&, const RankingShape&) = default;
};

/// Queries in memory of the caller's.
struct RankingQueries {
  std::span<const float> dense;           ///< of one query behind the other
  std::span<const EmbeddingBags> tables;  ///< of each table a bag for each query; no weights
};

/// A handle; copies lead to the same model. Thread: all calls from any number of threads.
class RankingModel {
 public:
  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] const RankingShape& shape() const;

  /// Ranks queries, up to 1024 at a time in 1 MiB, of which rows come to 16 MiB at most; returns
  /// shape().outputs floats of each, one query behind the other.
  /// Cost: the lines of each row, and two operations for each weight and query; on a node one round
  /// trip, in which queries wait for others up to 100 us, so that the networks run for many at
  /// once.
  /// Errors: invalid_argument, in words (an id that is no row's; bags or features that cannot be; a
  /// table whose rows have another dimension; too many queries), not_found (or an embedding table
  /// of the model is not there, which the words name), out_of_memory (of a node also: requests that
  /// a client has in flight come to more than 64 MiB of rows).
  [[nodiscard]] TableResult<std::vector<float>> infer(const RankingQueries& queries) const;
  /// The same of text, a query a line: dense features, and of each table ids, separated by spaces;
  /// features and tables are separated by bars. Errors: besides, words that name the line.
  [[nodiscard]] TableResult<std::vector<float>> infer_text(std::string_view queries) const;

 private:
  friend class Store;
  friend class client::RankingModelImpl;
  explicit RankingModel(std::shared_ptr<client::RankingModelImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<client::RankingModelImpl> impl_;
};

}  // namespace espalier
