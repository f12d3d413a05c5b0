// SPDX-License-Identifier: Apache-2.0
// Properties of appends beside readers and beside a hostile owner of the source, as checks that
// tests run on correct and broken tables.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "kinds/table/row_values.hpp"
#include "kinds/table/snapshot.hpp"
#include "kinds/table/testing/random_table.hpp"

namespace espalier::table {

/// Rows that say which append they belong to, their place in it, and how many it has. 4095 of them
/// fill a page.
inline Schema append_schema() {
  return schema_of(
      "append i64 not null, place i64 not null, count i64 not null, rest char(488) not null");
}

inline std::vector<std::byte> rows_of_append(const Schema& schema, std::int64_t append,
                                             std::int64_t count) {
  std::vector<std::byte> rows(static_cast<std::size_t>(count) * schema.row_bytes());
  for (std::int64_t i = 0; i < count; ++i) {
    std::byte* const row = rows.data() + static_cast<std::size_t>(i) * schema.row_bytes();
    const std::int64_t values[] = {append, i, count};
    for (std::size_t c = 0; c < 3; ++c) (void)store_integer(schema.column(c), row, values[c]);
    (void)store_text(schema.column(3), row, "x");
  }
  return rows;
}

/// Whether a row is at this place of an append.
inline bool is_place(const Schema& schema, const std::byte* row, std::int64_t append,
                     std::int64_t place) {
  return load_integer(schema.column(0), row) == append &&
         load_integer(schema.column(1), row) == place && load_text(schema.column(3), row) == "x";
}

/// Whether all appends that a snapshot sees are whole.
inline bool sees_whole_appends(const TableSnapshot& snapshot) {
  const Schema& schema = snapshot.table().schema();
  std::int64_t append = -1;
  std::int64_t place = 0;
  std::int64_t count = 0;
  std::uint64_t rows = 0;
  for (std::uint64_t p = 0; p < snapshot.pages(); ++p) {
    const auto span = snapshot.page(p);
    if (!span) return false;
    for (std::uint32_t i = 0; i < span->count; ++i, ++rows, ++place) {
      const std::byte* const row = (*span)[i];
      if (place == count) {
        append = load_integer(schema.column(0), row);
        count = load_integer(schema.column(2), row);
        place = 0;
        if (count == 0) return false;
      }
      if (!is_place(schema, row, append, place)) return false;
    }
  }
  return place == count && rows == snapshot.rows();
}

/// Whether the last row that a snapshot sees is the last one of its append: what is not yet copied
/// is seen soonest there.
inline bool ends_with_an_append(const TableSnapshot& snapshot) {
  if (snapshot.rows() == 0) return true;
  const Schema& schema = snapshot.table().schema();
  const auto last = snapshot.rows_from(snapshot.rows() - 1);
  if (!last) return false;
  const std::int64_t count = load_integer(schema.column(2), (*last)[0]);
  return count > 0 &&
         is_place(schema, (*last)[0], load_integer(schema.column(0), (*last)[0]), count - 1);
}

/// Two threads append while a third scans: whether each scan sees whole appends, and no fewer rows
/// than one before.
inline bool scans_see_whole_appends(int appends_each, std::int64_t rows_max) {
  TableStore store(std::uint64_t{256} << 20);
  const auto table = store.create(append_schema());
  std::atomic<int> running{2};
  std::atomic<bool> good{true};
  const auto append = [&](std::int64_t first) {
    base::Random random(static_cast<std::uint64_t>(first) + 1);
    for (int i = 0; i < appends_each && good; ++i) {
      const auto count =
          static_cast<std::int64_t>(random.between(1, static_cast<std::uint64_t>(rows_max)));
      if (!table->append(rows_of_append(table->schema(), first + i, count))) good = false;
    }
    --running;
  };
  std::thread one(append, 0);
  std::thread other(append, 1000);
  std::uint64_t rows = 0;
  for (int i = 0; running > 0 && good; ++i) {
    const TableSnapshot snapshot(table);
    if (!ends_with_an_append(snapshot) || snapshot.rows() < rows) good = false;
    rows = snapshot.rows();
    if (i % 100 == 0 && !sees_whole_appends(snapshot)) good = false;
  }
  one.join();
  other.join();
  return good && sees_whole_appends(TableSnapshot(table));
}

/// The owner of the source writes it all the time, good values and bad ones: whether no row of the
/// table breaks a rule, whatever the source held a moment after it was read.
inline bool appended_rows_are_those_checked(int appends) {
  constexpr std::size_t kRows = 64;
  TableStore store;
  const auto table = store.create(schema_of("d decimal(1) not null, s text(6) not null"));
  const std::size_t row_bytes = table->schema().row_bytes();
  std::vector<std::byte> source(row_bytes * kRows);
  std::atomic<bool> stop{false};
  std::thread owner([&] {
    base::Random random(1);
    while (!stop.load(std::memory_order_relaxed)) {
      std::byte* const row = source.data() + row_bytes * random.below(kRows);
      base::store_shared<std::uint64_t>(row, random.below(20) == 0 ? 10 : 9);
      base::store_shared<std::uint64_t>(row + 8, random.below(20) == 0 ? 7 : 6);
    }
  });
  std::uint64_t seen = 0;
  std::uint64_t refused = 0;  // the first one shows that the owner runs
  bool good = true;
  for (int i = 0; good && (i < appends || refused == 0); ++i) {
    const std::size_t row = static_cast<std::size_t>(i) % kRows;
    if (!table->append(std::span(source).subspan(row_bytes * row, row_bytes))) {
      ++refused;
      continue;
    }
    const TableSnapshot snapshot(table);
    const auto last = snapshot.rows_from(seen++);
    good = last && load_integer(table->schema().column(0), (*last)[0]) <= 9 &&
           base::load_plain<std::uint16_t>((*last)[0] + 8) <= 6 && snapshot.rows() == seen;
  }
  stop = true;
  owner.join();
  return good && seen > 0;
}

}  // namespace espalier::table
