// SPDX-License-Identifier: Apache-2.0
// Appends beside scans, drops and writers of the source, under ThreadSanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "kinds/table/row_values.hpp"
#include "kinds/table/snapshot.hpp"
#include "kinds/table/testing/table_checks.hpp"

namespace espalier::table {
namespace {

TEST(TableConcurrency, ScansSeeWholeAppendsOnly) { EXPECT_TRUE(scans_see_whole_appends(40, 200)); }

TEST(TableConcurrency, AppendedRowsAreThoseThatWereChecked) {
  EXPECT_TRUE(appended_rows_are_those_checked(50'000));
}

TEST(TableConcurrency, DropsBesideScansAndAppends) {
  TableStore store;
  const std::uint64_t before = store.region.taken_bytes();
  for (int round = 0; round < 20; ++round) {
    std::shared_ptr<Table> table = store.tables.create("t", append_schema()).value();
    std::atomic<int> started{0};
    std::thread appender([&started, table] {
      const std::vector<std::byte> rows = rows_of_append(table->schema(), 1, 3000);
      for (;;) {
        const auto appended = table->append(rows);
        if (appended && appended == 0) ++started;
        if (appended) continue;
        // Memory may end before the drop comes.
        if (appended.error().error.code == Code::dropped) break;
        ASSERT_EQ(appended.error().error.code, Code::out_of_memory);
      }
    });
    std::thread reader([&started, table] {
      ++started;
      while (!table->dropped()) {
        const TableSnapshot snapshot(table);
        for (std::uint64_t p = 0; p < snapshot.pages(); ++p) {
          const auto rows = snapshot.page(p);
          if (!rows) {
            ASSERT_EQ(rows.error().code, Code::dropped);
            break;
          }
          ASSERT_EQ(load_text(table->schema().column(3), (*rows)[rows->count - 1]), "x");
        }
      }
    });
    table = nullptr;
    while (started < 2) std::this_thread::yield();
    ASSERT_TRUE(store.tables.drop("t"));
    appender.join();
    reader.join();
  }
  store.pool.trim();
  EXPECT_EQ(store.region.taken_bytes(), before);
}

}  // namespace
}  // namespace espalier::table
