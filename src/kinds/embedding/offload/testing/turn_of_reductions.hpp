// SPDX-License-Identifier: Apache-2.0
// For tests: whether a scheduler asks for the rows of all reductions that it takes in a turn before
// it sums those of the first.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "kinds/embedding/embedding_table.hpp"
#include "kinds/embedding/format.hpp"

namespace espalier::offload {

/// A table of one row, which a request replaces that is taken behind reductions of it, in the same
/// turn. They see the new row if they are summed only when all requests are taken.
class TurnOfReductions {
 public:
  TurnOfReductions() {
    std::vector<std::byte> row(table_->row_bytes());
    EXPECT_TRUE(table_->append(row));
  }

  /// So many ids, as one bag of the table, or of the table twice.
  void reduce(std::uint32_t ids) {
    const embedding::ReduceShape shape{1, {}, 0, 1, ids, 0, 0};
    post(wire::OffloadId::embedding_reduce, bytes_of(shape) + words(ids));
    wanted_.push_back(std::vector<float>(kColumns, static_cast<float>(ids)));
  }
  void reduce_twice(std::uint32_t ids) {
    const embedding::TablesShape shape{1, {}, 2};
    const embedding::TableShape first{0, 0, 1, ids, 0, 0};
    const embedding::TableShape second{table_->id(), 0, 1, ids, 0, 0};
    post(wire::OffloadId::embedding_reduce_tables,
         bytes_of(shape) + bytes_of(first) + bytes_of(second) + words(ids) + words(ids));
    wanted_.push_back(std::vector<float>(2 * kColumns, static_cast<float>(ids)));
  }
  /// Then replaces the row, and has turns; returns whether each has seen the new one.
  bool all_see_the_new_row() {
    const std::vector<float> ones(kColumns, 1);
    const std::string row(reinterpret_cast<const char*>(ones.data()), kColumns * sizeof(float));
    post(wire::OffloadId::embedding_replace, bytes_of(std::uint64_t{0}) + row);
    client_->ring();
    bool all = true;
    for (std::uint32_t i = 0; i < tag_; ++i) {
      const Response response = node_.wait(client_);
      if (response.code() != Code::invalid) return false;
      if (response.header.tag == tag_ - 1) continue;  // the replacement's
      std::vector<float> found(response.payload.size() / sizeof(float));
      std::memcpy(found.data(), response.payload.data(), found.size() * sizeof(float));
      all = found == wanted_.at(response.header.tag) && all;
    }
    return all;
  }

 private:
  static constexpr std::uint32_t kColumns = 8;

  // One bag, all of row 0.
  static std::string words(std::uint32_t ids) {
    return std::string((std::size_t{1} + ids) * sizeof(std::uint32_t), '\0');
  }
  void post(wire::OffloadId offload, const std::string& payload) {
    client_->post(message_of(request_of(offload, table_->id(), tag_++), "", payload));
  }

  SchedulerFixture node_;
  const std::shared_ptr<embedding::EmbeddingTable> table_ =
      embedding::create_embedding_table(node_.catalog(), node_.store().pool, "t",
                                        embedding::shape_of({.dimension = kColumns}))
          .value();
  SchedulerClient& client_ = node_.connect(kLongRequests);
  std::uint32_t tag_ = 0;
  std::vector<std::vector<float>> wanted_;
};

/// Whether that holds of reductions of a few rows, of many, and of several tables.
inline bool rows_of_a_turn_are_asked_for_first() {
  bool all = true;
  for (const std::uint32_t ids : {1u, 16u, 300u}) {
    TurnOfReductions alone;
    alone.reduce(ids);
    all = alone.all_see_the_new_row() && all;
    TurnOfReductions tables;
    tables.reduce_twice(ids);
    all = tables.all_see_the_new_row() && all;
    TurnOfReductions together;
    together.reduce(ids);
    together.reduce_twice(ids);
    together.reduce(ids);
    all = together.all_see_the_new_row() && all;
  }
  return all;
}

}  // namespace espalier::offload
