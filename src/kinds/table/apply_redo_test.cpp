// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/apply_redo.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <utility>

#include "kinds/table/append_run.hpp"
#include "kinds/table/testing/redo_tables.hpp"

namespace espalier::table {
namespace {

using catalog::RedoFault;

// --- what is recorded ----------------------------------------------------------------------------

struct TableRedo : ::testing::Test, RedoTables {
  [[nodiscard]] std::string last() const { return catalog::hex_of(sink.records().back()); }
};

TEST(TableRows, AreVisibleOnceTheirRecordsAreDurable) {
  EXPECT_TRUE(rows_are_visible_once_they_are_durable());
}

TEST_F(TableRedo, GoldenBytesOfTablesThatWereMade) {
  const std::string column =
      "0000040000000000 0100610000000000 0000000000000000 0000000000000000 0000000000000000 "
      "0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000";
  static_cast<void>(store.create(schema_of("a i64 not null")));
  EXPECT_EQ(last(),
            "9200000000000000 0100000002010000 7800000002000000 7430000000000000 "
            "0000000000000000 0000000000000000 0000000000000000 0000000000000000 "
            "0000010001000000 " +
                column);
  SaltBytes salt;
  for (std::size_t i = 0; i < salt.size(); ++i) salt[i] = static_cast<std::byte>(i + 1);
  static_cast<void>(store.create(schema_of("a i64 not null"), {.encrypted = true, .salt = salt}));
  EXPECT_EQ(last(),
            "9200000000000000 0200000002010000 7800000002000000 7431010000000000 "
            "0000010203040506 0708090a0b0c0d0e 0f10111213141516 1718191a1b1c1d1e "
            "1f20010001000000 " +
                column);
}

TEST_F(TableRedo, GoldenBytesOfAppends) {
  const auto table = store.create(schema_of("a i64 not null"));
  const std::uint64_t rows[] = {0x0102, 3};
  ASSERT_TRUE(table->append(std::as_bytes(std::span(rows))));
  EXPECT_EQ(last(),
            "4000000000000000 0100000002100000 0000000000000000 0200000000000000 "
            "0000000000000000 0800000000000000 0201000000000000 0300000000000000");
  ASSERT_TRUE(table->append(std::as_bytes(std::span(rows)).first(8)));
  EXPECT_EQ(last(),
            "3800000000000000 0100000002100000 0200000000000000 0100000000000000 "
            "0000000000000000 0800000000000000 0201000000000000");
}

TEST_F(TableRedo, GoldenBytesOfEncryptedTables) {
  const auto table = store.create(schema_of("a i64 not null"), {.encrypted = true});
  const std::uint64_t rows[] = {0x0102, 3};
  for (const char* const reserved :
       {"2800000000000000 0100000002110000 0000000000000000 0100000000000000 0000000000000000",
        "2800000000000000 0100000002110000 0200000000000000 0100000000000000 0100000000000000"}) {
    const auto slots = table->reserve_slots(2, 0);
    EXPECT_EQ(last(), reserved);
    ASSERT_TRUE(table->append_reserved(slots->number, std::as_bytes(std::span(rows))));
  }
  // Both rows lie behind the first two, so no new page has a number.
  EXPECT_EQ(last(),
            "4000000000000000 0100000002100000 0200000000000000 0200000000000000 "
            "0100000000000000 0800000002000000 0201000000000000 0300000000000000");
}

TEST_F(TableRedo, WhatIsRefusedIsNotRecorded) {
  const auto table = store.create(schema_of("d decimal(1) not null"));
  const std::uint64_t wrong[] = {10};
  EXPECT_FALSE(table->append(std::as_bytes(std::span(wrong))));
  EXPECT_TRUE(table->append({}));
  EXPECT_EQ(table->reserve_slots(1, 0).error().code, Code::unsupported);
  const auto other_kind = store.create(schema_of("a i64 not null"), {.encrypted = true});
  EXPECT_EQ(other_kind->append_reserved(7, std::as_bytes(std::span(wrong))).error().code,
            Code::not_found);
  EXPECT_EQ(sink.count(), 2u);  // the tables were made
  EXPECT_EQ(sink.rooms(), 0u);
}

TEST_F(TableRedo, WithoutRoomNothingIsAppendedOrReserved) {
  const auto plain = store.create(schema_of("a i64 not null"));
  const auto table = store.create(schema_of("a i64 not null"), {.encrypted = true});
  const auto slots = table->reserve_slots(1, 0);
  const std::uint64_t row[] = {1};
  const std::uint64_t taken = store.region.taken_bytes();
  sink.refuse(true);
  EXPECT_EQ(plain->append(std::as_bytes(std::span(row))).error().error.code, Code::busy);
  EXPECT_EQ(table->append_reserved(slots->number, std::as_bytes(std::span(row))).error().code,
            Code::busy);
  EXPECT_EQ(table->reserve_slots(1, Table::kReservationNs).error().code, Code::busy);
  EXPECT_EQ(plain->rows() + table->rows(), 0u);
  EXPECT_LE(store.region.taken_bytes(), taken);
  sink.refuse(false);
  EXPECT_TRUE(plain->append(std::as_bytes(std::span(row))));
}

// What was sent for its slots may have been seen, so no other rows may go there; and nothing waits
// for rows that do not come.
TEST_F(TableRedo, ARefusedAppendEndsItsReservation) {
  const auto table = store.create(schema_of("a i64 not null"), {.encrypted = true});
  const std::uint64_t row[] = {1};
  const auto first = table->reserve_slots(1, 0);
  sink.refuse(true);
  EXPECT_FALSE(table->append_reserved(first->number, std::as_bytes(std::span(row))));
  sink.refuse(false);
  EXPECT_EQ(table->append_reserved(first->number, std::as_bytes(std::span(row))).error().code,
            Code::not_found);
  const auto next = table->reserve_slots(1, 0);
  ASSERT_TRUE(next);
  EXPECT_NE(next->slots.front().cipher_page, first->slots.front().cipher_page);
  EXPECT_TRUE(table->append_reserved(next->number, std::as_bytes(std::span(row))));
  EXPECT_TRUE(apply_all());
  EXPECT_TRUE(pages_of(of_other(table->id())) == pages_of(table));
}

TEST_F(TableRedo, AnAppendThatWaitsForItsTurnHoldsNoRoom) {
  const auto table = store.create(append_schema());
  const std::vector<std::byte> rows = rows_of_append(table->schema(), 1, 50'000);
  const SpanSource source(rows);
  const std::uint64_t count = rows.size() / table->schema().row_bytes();
  AppendRun first(*table, source, count);
  AppendRun second(*table, source, count);
  ASSERT_EQ(first.step(), AppendRun::Step::again);
  EXPECT_EQ(second.step(), AppendRun::Step::busy);
  EXPECT_EQ(sink.rooms(), 1u);
}

TEST(TableRedoOrder, RecordsComeBeforeTheirRows) { EXPECT_TRUE(records_come_before_their_rows()); }

// --- random appends, applied to another table ----------------------------------------------------

TEST(ApplyTableRedoModel, MakesTheSamePlainTables) {
  base::Random random(base::seed_from_environment(33));
  for (int round = 0; round < 6; ++round) {
    RedoTables tables;
    const auto from = tables.store.create(random_schema(random));
    for (int i = 0; i < 20; ++i) {
      const std::uint64_t most = i % 10 == 0 ? 3000 : 50;
      ASSERT_TRUE(from->append(random_rows(random, from->schema(), random.below(most))));
    }
    ASSERT_TRUE(tables.apply_all());
    const auto to = tables.of_other(from->id());
    EXPECT_EQ(to->name(), from->name());
    EXPECT_EQ(to->schema(), from->schema());
    EXPECT_TRUE(pages_of(to) == pages_of(from));
    ASSERT_TRUE(tables.apply_all());
    EXPECT_TRUE(pages_of(to) == pages_of(from));
  }
}

using Slots = std::set<std::pair<std::uint64_t, std::uint32_t>>;

// Whether none of them was given before.
bool give(const Reservation& reservation, Slots& given) {
  bool good = true;
  for (const wire::ReservedSlots& some : reservation.slots) {
    for (std::uint32_t i = 0; i < some.slots; ++i) {
      good = given.emplace(some.cipher_page, some.first_slot + i).second && good;
    }
  }
  return good;
}

TEST(ApplyTableRedoModel, MakesTheSameEncryptedTablesAndGivesNoSlotTwice) {
  base::Random random(base::seed_from_environment(34));
  for (int round = 0; round < 5; ++round) {
    RedoTables tables(std::uint64_t{96} << 20);
    const auto from =
        tables.store.create(schema_of("a i64 not null, b char(504) not null"), {.encrypted = true});
    const std::size_t row_bytes = from->schema().row_bytes();
    Slots given;
    std::uint64_t now_ns = 0;
    const std::uint64_t steps = random.below(12);
    for (std::uint64_t i = 0; i < steps; ++i) {
      const std::uint64_t count = 1 + random.below(random.below(6) == 0 ? 6000 : 200);
      const auto slots = from->reserve_slots(count, now_ns += 2 * Table::kReservationNs);
      ASSERT_TRUE(slots && give(*slots, given));
      const std::uint64_t what = random.below(6);
      if (what == 0) continue;  // given up
      std::vector<std::byte> rows((count + (what == 1 ? 1 : 0)) * row_bytes);
      random.fill(std::span(rows).first(std::min<std::size_t>(rows.size(), 100)));
      ASSERT_EQ(from->append_reserved(slots->number, rows).has_value(), what != 1);
    }
    for (int times = 0; times < 2; ++times) {
      ASSERT_TRUE(tables.apply_all());
      const auto to = tables.of_other(from->id());
      EXPECT_EQ(to->salt(), from->salt());
      EXPECT_TRUE(pages_of(to) == pages_of(from));
    }
    // What the first one gave, and a client may have used, the other one does not.
    const auto to = tables.of_other(from->id());
    for (int i = 0; i < 3; ++i) {
      const auto slots = to->reserve_slots(100, now_ns += 2 * Table::kReservationNs);
      ASSERT_TRUE(slots);
      EXPECT_TRUE(give(*slots, given)) << "round " << round;
      const std::vector<std::byte> rows(100 * row_bytes);
      ASSERT_TRUE(to->append_reserved(slots->number, rows));
    }
  }
}

// --- one record ----------------------------------------------------------------------------------

struct ApplyTableRedo : ::testing::Test, RedoTables {
  // Aligned as records are.
  struct Copy {
    explicit Copy(std::string_view record) : words((record.size() + 7) / 8), bytes(record.size()) {
      std::memcpy(words.data(), record.data(), bytes);
    }
    template <class T>
    Copy& with(std::size_t at, T value) {
      std::memcpy(reinterpret_cast<char*>(words.data()) + at, &value, sizeof value);
      return *this;
    }
    [[nodiscard]] std::string_view view() const {
      return {reinterpret_cast<const char*>(words.data()), bytes};
    }
    std::vector<std::uint64_t> words;
    std::size_t bytes;
  };
  RedoFault fault(const Copy& record) {
    const auto applied = apply(record.view());
    if (applied) return RedoFault::invalid;
    EXPECT_EQ(applied.error().code, Code::corrupt);
    return static_cast<RedoFault>(applied.error().detail);
  }
};

TEST_F(ApplyTableRedo, SaysWhatIsWrongWithRowsAndChangesNothing) {
  const auto table = store.create(schema_of("d decimal(1) not null"));
  const std::uint64_t rows[] = {1, 2};
  ASSERT_TRUE(table->append(std::as_bytes(std::span(rows))));
  ASSERT_TRUE(apply(sink.records().front()));
  const Copy good(sink.records().back());
  const auto with = [&good](std::size_t at, auto value) { return Copy(good).with(at, value); };
  EXPECT_EQ(fault(with(13, std::uint8_t{18})), RedoFault::type);
  EXPECT_EQ(fault(with(12, std::uint8_t{1})), RedoFault::kind);
  EXPECT_EQ(fault(with(16, std::uint64_t{1})), RedoFault::place);
  EXPECT_EQ(fault(with(16, ~std::uint64_t{0})), RedoFault::place);
  EXPECT_EQ(fault(with(24, std::uint64_t{1})), RedoFault::count);
  EXPECT_EQ(fault(with(32, std::uint64_t{1})), RedoFault::value);
  EXPECT_EQ(fault(with(40, std::uint32_t{0})), RedoFault::count);
  EXPECT_EQ(fault(with(40, std::uint32_t{16})), RedoFault::count);
  EXPECT_EQ(fault(with(44, std::uint32_t{1})), RedoFault::value);
  EXPECT_EQ(fault(with(48, std::uint64_t{10})), RedoFault::value);  // two digits
  EXPECT_EQ(fault(Copy(good.view().substr(0, 47)).with(0, std::uint64_t{47})),
            RedoFault::too_short);
  EXPECT_EQ(of_other(table->id())->rows(), 0u);
  EXPECT_EQ(fault(good), RedoFault::invalid);
  EXPECT_TRUE(pages_of(of_other(table->id())) == pages_of(table));
}

TEST_F(ApplyTableRedo, SaysWhatIsWrongWithSlots) {
  const auto table = store.create(schema_of("a i64 not null"), {.encrypted = true});
  const auto slots = table->reserve_slots(1, 0);
  const std::uint64_t rows[] = {1};
  ASSERT_TRUE(table->append_reserved(slots->number, std::as_bytes(std::span(rows))));
  const auto records = sink.records();
  ASSERT_TRUE(apply(records[0]));
  const Copy reserved(records[1]);
  EXPECT_EQ(fault(Copy(reserved).with(16, std::uint64_t{1})), RedoFault::place);
  EXPECT_EQ(fault(Copy(reserved).with(24, ~std::uint64_t{0})), RedoFault::value);
  EXPECT_EQ(fault(Copy(reserved).with(32, std::uint32_t{2})), RedoFault::value);
  EXPECT_EQ(fault(Copy(reserved).with(36, std::uint32_t{1})), RedoFault::reserved);
  EXPECT_EQ(fault(reserved), RedoFault::invalid);
  const Copy filled(records[2]);
  EXPECT_EQ(fault(Copy(filled).with(44, std::uint32_t{1})), RedoFault::place);  // of no page
  EXPECT_EQ(fault(Copy(filled).with(32, ~std::uint64_t{0})), RedoFault::value);
  EXPECT_EQ(fault(filled), RedoFault::invalid);
  EXPECT_TRUE(pages_of(of_other(table->id())) == pages_of(table));
}

// A number that the page before has would be used for two pages.
TEST_F(ApplyTableRedo, PagesHaveAscendingNumbersInCounterBlocks) {
  const auto table = store.create(schema_of("a i64 not null"), {.encrypted = true});
  const std::uint64_t rows[] = {1};
  ASSERT_TRUE(table->reserve_slots(1, 0));  // takes the number 0, and is given up
  for (std::uint64_t i = 1; i < 4; ++i) {
    const auto slots = table->reserve_slots(1, i * Table::kReservationNs);
    ASSERT_TRUE(slots);
    if (i == 2) continue;  // is given up, too, and so are the slots behind the first row
    ASSERT_TRUE(table->append_reserved(slots->number, std::as_bytes(std::span(rows))));
  }
  const auto records = sink.records();
  for (std::size_t i = 0; i + 1 < records.size(); ++i) ASSERT_TRUE(apply(records[i]));
  const Copy last(records.back());
  ASSERT_EQ(read_appended(last.view())->fields.cipher_page, 2u);
  EXPECT_EQ(fault(Copy(last).with(32, std::uint64_t{1})), RedoFault::value);
  EXPECT_EQ(fault(Copy(last).with(32, std::uint64_t{0})), RedoFault::value);
  EXPECT_EQ(of_other(table->id())->rows(), 1u);
  EXPECT_EQ(fault(last), RedoFault::invalid);
  EXPECT_TRUE(pages_of(of_other(table->id())) == pages_of(table));
}

TEST_F(ApplyTableRedo, ADroppedTableTakesNoRecord) {
  const auto table = store.create(schema_of("a i64 not null"));
  const std::uint64_t rows[] = {1};
  ASSERT_TRUE(table->append(std::as_bytes(std::span(rows))));
  ASSERT_TRUE(apply(sink.records().front()));
  const auto to = of_other(table->id());
  ASSERT_TRUE(*other.tables.catalog.drop_again({ObjectKind::table, table->id()}));
  EXPECT_TRUE(apply_redo(*to, sink.records().back()));
  EXPECT_EQ(to->rows(), 0u);
}

TEST_F(ApplyTableRedo, NoTableIsMadeOfAFormThatIsNone) {
  static_cast<void>(store.create(schema_of("a i64 not null"), {.encrypted = true}));
  const std::string form(catalog::read_created(sink.records().front())->form);
  const auto detail = [this](std::string_view changed) {
    const auto made =
        restore_table(other.tables.catalog, other.pool, {ObjectKind::table, 1, "t", changed});
    return made ? RedoFault::invalid : static_cast<RedoFault>(made.error().detail);
  };
  std::string changed = form;
  changed[0] = 2;
  EXPECT_EQ(detail(changed), RedoFault::form);
  changed = form;
  changed[4] = 1;
  EXPECT_EQ(detail(changed), RedoFault::form);
  EXPECT_EQ(detail({}), RedoFault::form);
  EXPECT_EQ(detail(form.substr(0, form.size() - 1)), RedoFault::form);
  EXPECT_EQ(detail(form), RedoFault::invalid);
}

}  // namespace
}  // namespace espalier::table
