// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/table.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "kinds/table/row_values.hpp"
#include "kinds/table/snapshot.hpp"
#include "kinds/table/testing/random_table.hpp"

namespace espalier::table {
namespace {

/// All rows that a snapshot sees, one behind the other.
std::vector<std::byte> rows_of(const TableSnapshot& snapshot) {
  std::vector<std::byte> all;
  std::uint64_t next = 0;
  for (std::uint64_t page = 0; page < snapshot.pages(); ++page) {
    const RowSpan rows = snapshot.page(page).value();
    EXPECT_EQ(rows.first_row, next);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(rows.rows) % 64, 0u);
    all.insert(all.end(), rows.rows, rows.rows + rows.bytes());
    next += rows.count;
  }
  EXPECT_EQ(next, snapshot.rows());
  return all;
}

/// `count` rows of one i64 column, from `first` on.
std::vector<std::byte> numbers(std::int64_t first, std::size_t count) {
  std::vector<std::byte> rows(count * 8);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t value = first + static_cast<std::int64_t>(i);
    std::memcpy(rows.data() + i * 8, &value, 8);
  }
  return rows;
}

TEST(Table, BeginsEmpty) {
  TableStore store;
  const auto table = store.create(schema_of("a i64 not null"));
  const TableSnapshot snapshot(table);
  EXPECT_EQ(snapshot.rows(), 0u);
  EXPECT_EQ(snapshot.pages(), 0u);
  EXPECT_EQ(table->append({}), 0u);
  EXPECT_EQ(table->stats().memory_bytes, 65536u);
}

TEST(Table, ASnapshotSeesWhatWasThereAndNoMore) {
  TableStore store;
  const auto table = store.create(schema_of("a i64 not null"));
  EXPECT_EQ(table->append(numbers(0, 3)), 0u);
  const TableSnapshot before(table);
  EXPECT_EQ(table->append(numbers(3, 400'000)), 3u);
  const TableSnapshot after(table);
  EXPECT_EQ(rows_of(before), numbers(0, 3));
  EXPECT_EQ(rows_of(after), numbers(0, 400'003));
  EXPECT_EQ(before.pages(), 1u);
  EXPECT_EQ(after.pages(), 2u);
  const TableStats stats = table->stats();
  EXPECT_EQ(stats.rows, 400'003u);
  EXPECT_EQ(stats.pages, 2u);
  EXPECT_EQ(stats.row_bytes, 8u);
  EXPECT_EQ(stats.memory_bytes, 65536u + 32768 + 2 * wire::kRowPageBytes);
}

TEST(Table, PagesFillToTheLastRow) {
  TableStore store;
  const Schema schema = schema_of("a i64 not null");
  const std::uint32_t page = schema.rows_per_page();
  for (const std::size_t first : {std::size_t{1}, std::size_t{page} - 1, std::size_t{page}}) {
    const auto table = store.create(schema);
    std::size_t rows = 0;
    for (const std::size_t count : {first, std::size_t{1}, std::size_t{page}, std::size_t{1}}) {
      EXPECT_EQ(table->append(numbers(static_cast<std::int64_t>(rows), count)), rows);
      rows += count;
      EXPECT_EQ(table->stats().pages, (rows + page - 1) / page);
      const TableSnapshot snapshot(table);
      EXPECT_EQ(rows_of(snapshot), numbers(0, rows));
    }
  }
}

TEST(Table, RowsAreFoundByNumber) {
  TableStore store;
  const auto table = store.create(schema_of("a i64 not null"));
  const std::uint32_t page = table->schema().rows_per_page();
  ASSERT_TRUE(table->append(numbers(0, std::size_t{page} * 3 + 5)));
  const TableSnapshot snapshot(table);
  for (const std::uint64_t row : {0u, 1u, page - 1, page, page + 1, 2 * page, 3 * page + 4}) {
    EXPECT_EQ(snapshot.page_of(row), row / page);
    const RowSpan span = snapshot.rows_from(row).value();
    EXPECT_EQ(span.first_row, row);
    EXPECT_EQ(span.count, std::min<std::uint64_t>((row / page + 1) * page, 3 * page + 5) - row);
    EXPECT_EQ(load_integer(table->schema().column(0), span[0]), static_cast<std::int64_t>(row));
  }
}

// Random schemas, rows and sizes of appends, now and then with wrong rows among them.
TEST(Table, HoldsWhatAModelHolds) {
  base::Random random(base::seed_from_environment(5));
  TableStore store(std::uint64_t{256} << 20);
  for (int i = 0; i < 60; ++i) {
    const Schema schema = random_schema(random, 6);
    const auto table = store.create(schema);
    std::vector<std::byte> model;
    for (int j = 0; j < 8; ++j) {
      const std::size_t count = random.chance(0.1) ? random.below(20'000) : random.below(200);
      const std::vector<std::byte> rows = random_rows(random, schema, count);
      EXPECT_EQ(table->append(rows), model.size() / schema.row_bytes());
      model.insert(model.end(), rows.begin(), rows.end());
    }
    ASSERT_EQ(rows_of(TableSnapshot(table)), model) << schema.to_text();
    ASSERT_TRUE(store.tables.drop(table->name()));
  }
}

TEST(Table, AnAppendIsAllOrNothing) {
  TableStore store;
  const auto table = store.create(schema_of("d decimal(1) not null"));
  ASSERT_TRUE(table->append(numbers(0, 5)));
  const std::uint64_t taken = store.region.taken_bytes();
  std::vector<std::byte> rows(std::size_t{8} * 600'000);  // three pages
  const auto spoil = [&](std::size_t row, std::int64_t value) {
    std::memcpy(rows.data() + 8 * row, &value, 8);
  };
  spoil(7, 10);
  spoil(599'999, -10);
  const auto refused = table->append(rows);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().error.code, Code::invalid_argument);
  EXPECT_EQ(refused.error().wrong_rows, 2u);
  EXPECT_EQ(refused.error().wrong, (std::vector<WrongRow>{{7, 0, RowFault::decimal_digits},
                                                          {599'999, 0, RowFault::decimal_digits}}));
  EXPECT_EQ(table->stats().rows, 5u);
  EXPECT_EQ(table->stats().pages, 1u);
  EXPECT_EQ(store.region.taken_bytes(), taken) << "the new pages went back";
  EXPECT_EQ(rows_of(TableSnapshot(table)), numbers(0, 5));
  spoil(7, 9);
  spoil(599'999, -9);
  EXPECT_EQ(table->append(rows), 5u);
  EXPECT_EQ(table->stats().rows, 600'005u);
}

TEST(Table, NamesTheFirstHundredWrongRows) {
  TableStore store;
  const auto table = store.create(schema_of("d decimal(1) not null"));
  const auto refused = table->append(numbers(5, 1000));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().wrong_rows, 995u);
  ASSERT_EQ(refused.error().wrong.size(), Table::kWrongRowsNamed);
  EXPECT_EQ(refused.error().wrong.front().row, 5u);
  EXPECT_EQ(refused.error().wrong.back().row, 104u);
}

TEST(Table, ShortMemoryChangesNothing) {
  TableStore store;
  const auto table = store.create(schema_of("a i64 not null"));
  ASSERT_TRUE(table->append(numbers(0, 5)));
  const std::vector<std::byte> three_pages = numbers(5, 1'000'000);
  for (int n = 0; n < 3; ++n) {
    store.pool.fail_after(n);
    const auto refused = table->append(three_pages);
    ASSERT_FALSE(refused) << n;
    EXPECT_EQ(refused.error().error.code, Code::out_of_memory);
    EXPECT_FALSE(store.pool.failure_pending());
    EXPECT_EQ(rows_of(TableSnapshot(table)), numbers(0, 5));
    EXPECT_EQ(store.pool.stats(memory::relation_class_of(wire::kRowPageBytes)).in_use, 1u);
  }
  store.pool.fail_after(-1);
  EXPECT_EQ(table->append(three_pages), 5u);
  EXPECT_EQ(rows_of(TableSnapshot(table)), numbers(0, 1'000'005));
  // Another that meets the true limit.
  const auto refused = table->append(numbers(0, 40 * 262'144));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().error.code, Code::out_of_memory);
  EXPECT_EQ(table->stats().rows, 1'000'005u);
}

TEST(Table, TheFirstAppendAndTheTableItselfMayFindNoMemory) {
  TableStore store;
  store.pool.fail_after(0);
  EXPECT_EQ(store.tables.create("x", schema_of("a i8")).error().code, Code::out_of_memory);
  const auto table = store.create(schema_of("a i64"));
  for (int n = 0; n < 2; ++n) {  // the page list, then the page
    store.pool.fail_after(n);
    EXPECT_EQ(table->append(std::vector<std::byte>(16)).error().error.code, Code::out_of_memory);
    EXPECT_EQ(store.pool.stats(memory::relation_class_of(wire::kRowPageListBytes)).in_use, 0u);
  }
  EXPECT_EQ(table->append(std::vector<std::byte>(16)), 0u);
}

// What readers from elsewhere go by: kinds/table/format/table.hpp, followed by hand.
TEST(Table, ItsBytesAreThoseOfTheFormat) {
  TableStore store;
  const auto table = store.create(schema_of("a i64 not null"));
  ASSERT_TRUE(table->append(numbers(0, 262'140)));
  const std::byte* const header = store.pool.at(table->header_offset());
  wire::TableHeader h;
  std::memcpy(&h, header, sizeof h);
  EXPECT_EQ(h.table_id, table->id());
  EXPECT_EQ(h.superseded, wire::kLive);
  EXPECT_EQ(h.created, wire::kNoNode);
  EXPECT_EQ(h.magic, wire::kTableMagic);
  EXPECT_EQ(h.rows, 262'140u);
  EXPECT_EQ(h.pages, 2u);
  EXPECT_EQ(Schema::decode({header + wire::kTableSchemaOffset, h.schema_bytes}), table->schema());
  std::uint64_t part = 0;
  std::memcpy(&part, header + wire::kTableDirectoryOffset, 8);
  wire::RowPageEntry entries[2];
  std::memcpy(entries, store.pool.at(part) + wire::kRowPageListOffset, sizeof entries);
  EXPECT_EQ(entries[0].first_row, 0u);
  EXPECT_EQ(entries[1].first_row, table->schema().rows_per_page());
  for (std::uint64_t i = 0; i < 2; ++i) {
    const wire::Ref ref{entries[i].page};
    EXPECT_TRUE(
        store.pool.is_buffer_begin(ref.offset(), memory::BufferKind::relation, ref.generation()));
    wire::RowPageHeader page;
    std::memcpy(&page, store.pool.at(ref.offset()), sizeof page);
    EXPECT_EQ(page.table_id, table->id());
    EXPECT_EQ(page.page, i);
    EXPECT_EQ(page.first_row, entries[i].first_row);
    EXPECT_EQ(page.row_bytes, 8u);
    EXPECT_EQ(page.superseded, wire::kLive);
  }
  table->set_dropped();
  std::memcpy(&h, header, sizeof h);
  EXPECT_EQ(h.superseded, 0u);
}

}  // namespace
}  // namespace espalier::table
