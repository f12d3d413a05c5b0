// SPDX-License-Identifier: Apache-2.0
// One request to a model: its queries, and what they come to. Queries are read or parsed, rows are
// reduced in steps, and then the networks run, of several requests together if they came together.
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

  /// Takes queries as they come. Errors: invalid_argument, in words.
  TableResult<void> read(const InferShape& shape, std::string_view bytes);
  /// Finds the tables, and asks for the first rows. Cost: a look-up for each table, and
  /// pooled_bytes() of memory, which is not touched yet. Errors: not_found (the model was dropped
  /// or is unmade, or a table is not there, which the words name), busy (the model is being made),
  /// kRecordLost (of its weights), invalid_argument (in words: a table of another dimension; bags
  /// that cannot be; an id that is no row's), outdated (a table's groups are not those by which ids
  /// are renumbered). Requires: read() went well.
  TableResult<void> open(const catalog::Catalog& catalog);
  /// Folds some rows; returns whether there are others. Errors: as of open().
  TableResult<bool> step();
  /// For the networks. Requires: step() said that there are no others.
  [[nodiscard]] DenseItem item();

  [[nodiscard]] const std::shared_ptr<const RankingObject>& model() const { return model_; }
  [[nodiscard]] std::uint32_t queries() const;
  /// Of reduced rows, which open() takes and whose last holder gives them back.
  [[nodiscard]] std::uint64_t pooled_bytes() const;
  /// There once the networks ran.
  [[nodiscard]] const std::vector<float>& ranks() const { return ranks_; }

 private:
  struct Work;
  TableResult<void> open_tables(const catalog::Catalog& catalog, std::span<float> pooled);

  const std::shared_ptr<const RankingObject> model_;
  const std::unique_ptr<Work> work_;
  std::vector<float> ranks_;
};

/// All of it on this thread; returns the ranks. Errors: as above.
TableResult<std::vector<float>> infer(std::shared_ptr<const RankingObject> model,
                                      const catalog::Catalog& catalog, const InferShape& shape,
                                      std::string_view bytes);

}  // namespace espalier::embedding
