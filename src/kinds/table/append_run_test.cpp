// SPDX-License-Identifier: Apache-2.0
// Appends in steps: whose turn it is, and what is left of those that do not end.
#include "kinds/table/append_run.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <vector>

#include "kinds/table/snapshot.hpp"
#include "kinds/table/testing/random_table.hpp"

namespace espalier::table {
namespace {

using AppendStep = AppendRun::Step;

/// So many that an append of them takes many steps, and more than a page.
constexpr std::size_t kAppendedRows = 400'000;

std::vector<std::byte> rows_from(std::int64_t first) {
  std::vector<std::byte> rows(kAppendedRows * 8);
  for (std::size_t i = 0; i < kAppendedRows; ++i) {
    const std::int64_t value = first + static_cast<std::int64_t>(i);
    std::memcpy(rows.data() + i * 8, &value, 8);
  }
  return rows;
}

std::uint64_t pages_in_use(const TableStore& store) {
  return store.pool.stats(memory::relation_class_of(wire::kRowPageBytes)).in_use;
}

int steps_to_end(AppendRun& run) {
  int steps = 1;
  while (run.step() != AppendStep::done) ++steps;
  return steps;
}

TEST(AppendRun, ShowsItsRowsAtItsEndAndTakesTurnsWithOthers) {
  TableStore store;
  const auto table = store.create(schema_of("a i64 not null"));
  const std::vector<std::byte> rows = rows_from(0);
  const SpanSource source(rows);
  AppendRun first(*table, source, kAppendedRows);
  AppendRun second(*table, source, kAppendedRows);
  ASSERT_EQ(first.step(), AppendStep::again);
  EXPECT_EQ(second.step(), AppendStep::busy);
  EXPECT_EQ(first.step(), AppendStep::again);
  EXPECT_EQ(second.step(), AppendStep::busy);
  EXPECT_EQ(table->rows(), 0u) << "rows that are copied only in part";
  EXPECT_GT(steps_to_end(first), 10);
  EXPECT_EQ(first.result(), 0u);
  EXPECT_EQ(table->rows(), kAppendedRows);
  steps_to_end(second);
  EXPECT_EQ(second.result(), kAppendedRows);
  EXPECT_EQ(table->rows(), 2 * kAppendedRows);
  EXPECT_EQ(second.step(), AppendStep::done);
  const TableSnapshot snapshot(table);
  EXPECT_EQ(std::memcmp(snapshot.page(0)->rows, rows.data(), snapshot.page(0)->bytes()), 0);
}

TEST(AppendRun, OneThatIsGivenUpLeavesNothing) {
  TableStore store;
  const auto table = store.create(schema_of("a i64 not null"));
  const std::vector<std::byte> rows = rows_from(7);
  const SpanSource source(rows);
  const std::uint64_t before = pages_in_use(store);
  {
    AppendRun run(*table, source, kAppendedRows);
    ASSERT_EQ(run.step(), AppendStep::again);
    EXPECT_GT(pages_in_use(store), before);
  }
  EXPECT_EQ(pages_in_use(store), before);
  EXPECT_EQ(table->rows(), 0u);
  EXPECT_EQ(table->append(std::span(rows).first(80)), 0u) << "and the turn is free";
}

TEST(AppendRun, AWrongRowInALaterStepAppendsNone) {
  TableStore store;
  const auto table = store.create(schema_of("a text(6) not null"));
  std::vector<std::byte> rows(kAppendedRows * 8);
  rows[(kAppendedRows - 3) * 8] = std::byte{200};
  const SpanSource source(rows);
  AppendRun run(*table, source, kAppendedRows);
  EXPECT_GT(steps_to_end(run), 10);
  ASSERT_FALSE(run.result());
  EXPECT_EQ(run.result().error().wrong_rows, 1u);
  EXPECT_EQ(run.result().error().wrong.at(0).row, kAppendedRows - 3);
  EXPECT_EQ(table->rows(), 0u);
}

TEST(AppendRun, AReservationThatWasFilledInPartIsDead) {
  TableStore store;
  const auto table = store.create(schema_of("a i64 not null"), {.encrypted = true});
  const std::vector<std::byte> rows = rows_from(0);
  const SpanSource source(rows);
  const auto reservation = table->reserve_slots(kAppendedRows, 0);
  ASSERT_TRUE(reservation);
  {
    AppendRun run(*table, source, kAppendedRows, ReservationClaim{reservation->number});
    ASSERT_EQ(run.step(), AppendStep::again);
    EXPECT_EQ(table->reserve_slots(1, ~std::uint64_t{0}).error().code, Code::busy)
        << "also when it is old: an append has the turn";
  }
  EXPECT_EQ(table->append_reserved(reservation->number, rows).error().code, Code::not_found);
  const auto next = table->reserve_slots(1, 0);
  ASSERT_TRUE(next);
  for (const wire::ReservedSlots& slots : next->slots) {
    for (const wire::ReservedSlots& dead : reservation->slots) {
      EXPECT_NE(slots.cipher_page, dead.cipher_page) << "no slot is given twice";
    }
  }
}

}  // namespace
}  // namespace espalier::table
