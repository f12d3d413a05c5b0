// SPDX-License-Identifier: Apache-2.0
// Threads that append to one table, by whole appends and by steps: the records come in the order of
// the rows, none is missing, and they make the same table.
#include <gtest/gtest.h>

#include <thread>

#include "table/append_run.hpp"
#include "table/testing/redo_tables.hpp"

namespace espalier::table {
namespace {

TEST(TableRedoConcurrency, RecordsComeInTheOrderOfTheirRows) {
  RedoTables tables;
  const auto table = tables.store.create(append_schema());
  const auto append = [&table](std::int64_t first, bool by_steps) {
    for (std::int64_t i = 0; i < 40; ++i) {
      const std::vector<std::byte> rows =
          rows_of_append(table->schema(), first + i, 1 + (first + i) % 300);
      if (!by_steps) {
        ASSERT_TRUE(table->append(rows));
        continue;
      }
      const SpanSource source(rows);
      AppendRun run(*table, source, rows.size() / table->schema().row_bytes());
      while (run.step() != AppendRun::Step::done) std::this_thread::yield();
      ASSERT_TRUE(run.result());
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&, i] { append(1000 * i, i % 2 != 0); });
  for (std::thread& thread : threads) thread.join();
  std::uint64_t rows = 0;
  for (const std::string_view record : tables.sink.records()) {
    const auto appended = read_appended(record);
    if (!appended) continue;  // the table was made
    EXPECT_EQ(appended->fields.first_row, rows);
    rows += appended->fields.rows;
  }
  EXPECT_EQ(rows, table->rows());
  EXPECT_EQ(tables.sink.rooms(), 0u);
  ASSERT_TRUE(tables.apply_all());
  EXPECT_TRUE(pages_of(tables.of_other(table->id())) == pages_of(table));
}

}  // namespace
}  // namespace espalier::table
