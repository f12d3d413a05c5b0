// SPDX-License-Identifier: Apache-2.0
// One request to a model: its queries, and their ranks. Queries are read or parsed, rows are
// reduced in steps, and then the networks run, for several requests together if they arrive
// together.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "espalier/table_error.hpp"
#include "kinds/embedding/model/model_format.hpp"

namespace espalier::catalog {
class Catalog;
}

namespace espalier::embedding {

class RankingObject;
struct DenseItem;

class Inference {
 public:
  explicit Inference(std::shared_ptr<const RankingObject> model);
  ~Inference();
  Inference(const Inference&) = delete;
  Inference& operator=(const Inference&) = delete;

  /// Parses queries as they arrived. Errors: invalid_argument, in words.
  TableResult<void> read(const InferShape& shape, std::string_view bytes);
  /// Finds the tables, and prefetches the first rows. Cost: a look-up for each table, and
  /// pooled_bytes() of memory, which is not touched yet. Errors: not_found (the model was dropped
  /// or is unmade, or a table is not there, which the words name), busy (the model is being made),
  /// kRecordLost (of its weights), invalid_argument (in words: a table of another dimension; bags
  /// that cannot be; an id that is no row's), outdated (a table's groups are not those by which ids
  /// are renumbered). Requires: read() went well.
  TableResult<void> open(const catalog::Catalog& catalog);
  /// Folds some rows; returns whether there are more. Errors: as of open().
  TableResult<bool> step();
  /// The input of the networks. Requires: step() returned that there are no more rows.
  [[nodiscard]] DenseItem item();

  [[nodiscard]] const std::shared_ptr<const RankingObject>& model() const { return model_; }
  [[nodiscard]] std::uint32_t queries() const;
  /// Memory of reduced rows, which open() allocates and the last holder frees.
  [[nodiscard]] std::uint64_t pooled_bytes() const;
  /// Set once the networks ran.
  [[nodiscard]] const std::vector<float>& ranks() const { return ranks_; }

 private:
  struct Work;
  TableResult<void> open_tables(const catalog::Catalog& catalog, std::span<float> pooled);

  const std::shared_ptr<const RankingObject> model_;
  const std::unique_ptr<Work> work_;
  std::vector<float> ranks_;
};

/// Runs a request on this thread; returns the ranks. Errors: as above.
TableResult<std::vector<float>> infer(std::shared_ptr<const RankingObject> model,
                                      const catalog::Catalog& catalog, const InferShape& shape,
                                      std::string_view bytes);

}  // namespace espalier::embedding
