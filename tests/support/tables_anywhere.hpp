// SPDX-License-Identifier: Apache-2.0
// A store with tables at each place: in this process, or on a node of this process, over each
// transport.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "espalier/query.hpp"
#include "espalier/regex.hpp"
#include "espalier/table.hpp"
#include "tests/support/node_fixture.hpp"

namespace espalier::test {

inline constexpr std::uint64_t kTableMemoryBytes = std::uint64_t{512} << 20;
inline constexpr const char* kSalesSchema =
    "id i64 not null, shop char(3), price decimal(8,2), day date, note text(9)";

class TablesAnywhere : public NodeFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  [[nodiscard]] static bool embedded() { return std::string_view(GetParam()) == "embedded"; }
  void open(std::uint64_t memory_bytes = kTableMemoryBytes) {
    if (embedded()) {
      auto store = Store::open({.memory_bytes_max = memory_bytes,
                                .huge_pages = false,
                                .regexes = regular_expressions()});
      ASSERT_TRUE(store);
      store_.emplace(std::move(*store));
      return;
    }
    config_.memory.limit = memory_bytes;
    reach_by(GetParam());
    start();
    store_.emplace(connect());
  }
  Table make(const std::string& name, const std::string& schema = kSalesSchema) {
    const auto table = store_->create_table(name, *espalier::Schema::parse(schema));
    EXPECT_TRUE(table) << message(table.error());
    return *table;
  }
  /// Ids from 0 on, alternating shops, prices with occasional nulls.
  void fill(const Table& table, std::int64_t count) {
    constexpr const char* kShops[] = {"ab", "cd", "ef"};
    RowWriter rows = table.writer();
    for (std::int64_t i = 0; i < count; ++i) {
      std::optional<Decimal> price;
      if (i % 7 != 0) price = Decimal{i % 1000, 2};
      rows.add(i, kShops[i % 3], price,
               Date(std::chrono::year(2024) / 1 / 1) + std::chrono::days(i % 50), std::nullopt);
    }
    const auto first = rows.commit();
    ASSERT_TRUE(first) << message(first.error());
  }

  std::optional<Store> store_;
};

/// All rows of an answer, a line each.
inline std::vector<std::string> texts(const TableResult<Rows>& rows) {
  std::vector<std::string> lines;
  EXPECT_TRUE(rows) << message(rows.error());
  if (!rows) return lines;
  for (const Row row : *rows) {
    std::string line;
    for (std::size_t i = 0; i < rows->columns().size(); ++i) line += row.value(i).to_text() + "|";
    lines.push_back(std::move(line));
  }
  return lines;
}

inline constexpr const char* kTablePlaces[] = {"embedded", "unix",      "shm",   "shm_send",
                                               "roce",     "roce_send", "memif", "ofi"};

}  // namespace espalier::test
