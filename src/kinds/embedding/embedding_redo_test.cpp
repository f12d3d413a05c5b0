// SPDX-License-Identifier: Apache-2.0
// Records of embedding tables: golden bytes, each field that cannot be, and random work that its
// records make again, from the beginning or from anywhere before.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "catalog/catalog.hpp"
#include "catalog/testing/recording_sink.hpp"
#include "kinds/embedding/apply_redo.hpp"
#include "kinds/embedding/redo_record.hpp"
#include "kinds/embedding/testing/embedding_store.hpp"
#include "kinds/embedding/testing/grouped_rows.hpp"
#include "kinds/embedding/testing/whole_rows.hpp"

namespace espalier::embedding {
namespace {

using catalog::RedoFault;

std::string record_of(const RowsRecord& fields, std::string_view rows) {
  RowsRecord record = fields;
  record.head = catalog::redo_head(ObjectKind::embedding, fields.head.object, fields.head.type,
                                   sizeof record + rows.size());
  return std::string(base::bytes_of(record)) + std::string(rows);
}

RowsRecord good_fields(RedoType type = RedoType::appended) {
  RowsRecord fields{};
  fields.head.object = 7;
  fields.head.type = static_cast<std::uint8_t>(type);
  fields.row = 0x0102;
  fields.rows = 1;
  fields.row_bytes = 4;
  return fields;
}

TEST(EmbeddingRedo, FieldsLieWhereTheDocumentDrawsThem) {
  EXPECT_EQ(record_of(good_fields(), "rows").substr(16),
            std::string("\2\1\0\0\0\0\0\0\1\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0rows", 28));
}

TEST(EmbeddingRedo, EachFieldThatCannotBeIsRefused) {
  const auto fault = [](const RowsRecord& fields, std::string_view rows = "rows") {
    const auto read = read_rows_redo(record_of(fields, rows));
    return read ? RedoFault::invalid : static_cast<RedoFault>(read.error().detail);
  };
  EXPECT_EQ(fault(good_fields()), RedoFault::invalid);
  EXPECT_EQ(fault(good_fields(RedoType::replaced)), RedoFault::invalid);
  EXPECT_EQ(fault(good_fields(static_cast<RedoType>(19))), RedoFault::type);
  RowsRecord bad = good_fields();
  bad.head.object = 0;
  EXPECT_EQ(fault(bad), RedoFault::object);
  bad = good_fields();
  bad.reserved = 1;
  EXPECT_EQ(fault(bad), RedoFault::reserved);
  bad = good_fields();
  bad.rows = 0;
  EXPECT_EQ(fault(bad, ""), RedoFault::count);
  bad.rows = 2;
  EXPECT_EQ(fault(bad), RedoFault::count);
  EXPECT_EQ(fault(good_fields(), "rowsr"), RedoFault::count);
  bad = good_fields(RedoType::replaced);
  bad.rows = 2;
  EXPECT_EQ(fault(bad, "rowsrows"), RedoFault::count);
  bad = good_fields();
  bad.row_bytes = 0;
  EXPECT_EQ(fault(bad), RedoFault::count);
  bad = good_fields();
  bad.row = ~std::uint64_t{0};
  EXPECT_EQ(fault(bad), RedoFault::place);
  const std::string whole = record_of(good_fields(), "");
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(read_rows_redo(std::string_view(whole).substr(0, bytes)));
  }
}

std::vector<float> all_rows(const EmbeddingTable& table) {
  OwnWork work;
  for (std::uint32_t row = 0; row < table.rows(); ++row) {
    work.offsets.push_back(row);
    work.ids.push_back(row);
  }
  return reduced(table, work, gather_kit(base::Isa::scalar)).value();
}

TEST(EmbeddingRedo, RecordsMakeTheSameTable) {
  base::Random random(11);
  for (const EmbeddingType type : kAllTypes) {
    EmbeddingStore store;
    EmbeddingStore other;
    catalog::RecordingSink sink;
    const auto table = store.create({8, type});
    const auto again = other.create({8, type});
    table->record_to(&sink);
    for (int step = 0; step < 300; ++step) {
      if (table->rows() == 0 || random.below(3) == 0) {
        ASSERT_TRUE(table->append(random_rows(*table, 1 + random.below(5), random)));
      } else {
        ASSERT_TRUE(table->replace(random.below(table->rows()), random_rows(*table, 1, random)));
      }
    }
    const auto records = sink.records();
    ASSERT_EQ(records.size(), 300u);
    const std::size_t half = 150;
    for (std::size_t i = 0; i < half; ++i) ASSERT_TRUE(apply_redo(*again, records[i]));
    // As recovery does: some come twice.
    for (std::size_t i = half - 50; i < records.size(); ++i) {
      ASSERT_TRUE(apply_redo(*again, records[i])) << i;
    }
    EXPECT_TRUE(agree(all_rows(*again), all_rows(*table), false));
    EXPECT_EQ(audit(*again), std::vector<std::string>{});
  }
}

std::string groups_record(const std::vector<std::uint32_t>& rows,
                          const std::vector<std::uint8_t>& sizes, bool first, bool last,
                          std::uint32_t table) {
  const GroupsPart part{first, last, rows, sizes};
  std::string record(part.bytes(), '\0');
  part.write(std::as_writable_bytes(std::span(record)), table);
  return record;
}

TEST(EmbeddingRedo, GroupsAreWrittenAsTheDocumentDrawsThem) {
  EXPECT_EQ(groups_record({5, 6}, {2}, true, false, 7).substr(8),
            std::string("\7\0\0\0\x8\x12\0\0\2\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0"
                        "\5\0\0\0\6\0\0\0\2",
                        33)
                .replace(4, 1, 1, static_cast<char>(ObjectKind::embedding)));
}

TEST(EmbeddingRedo, EachFieldOfGroupsThatCannotBeIsRefused) {
  const auto fault = [](std::string record) {
    const auto read = read_groups_redo(record);
    return read ? RedoFault::invalid : static_cast<RedoFault>(read.error().detail);
  };
  const std::string good = groups_record({5, 6, 7}, {2, 1}, true, true, 7);
  EXPECT_EQ(fault(good), RedoFault::invalid);
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
    std::string cut = good.substr(0, bytes);
    EXPECT_NE(fault(cut), RedoFault::invalid);
    if (bytes >= sizeof bytes) cut[0] = static_cast<char>(bytes);
    EXPECT_NE(fault(cut), RedoFault::invalid) << bytes;
  }
  const auto with = [&](std::size_t at, char byte) {
    std::string bad = good;
    bad[at] = byte;
    return fault(bad);
  };
  EXPECT_EQ(with(8, 0), RedoFault::object);
  EXPECT_EQ(with(13, 17), RedoFault::type);
  EXPECT_EQ(with(16, 2), RedoFault::count);
  EXPECT_EQ(with(20, 3), RedoFault::count);
  EXPECT_EQ(with(24, 4), RedoFault::reserved);
  EXPECT_EQ(with(28, 1), RedoFault::reserved);
  EXPECT_EQ(with(good.size() - 1, 2), RedoFault::count);
}

// Groups are there again, whatever comes between their parts; parts without the first are left out.
TEST(EmbeddingRedo, GroupsAreMadeAgain) {
  base::Random random(12);
  EmbeddingStore store;
  EmbeddingStore other;
  catalog::RecordingSink sink;
  const auto table = store.create({8});
  const auto again = other.create({8});
  table->record_to(&sink);
  const auto rows = random_rows(*table, 9000, random);
  ASSERT_TRUE(table->append(rows));
  const OwnGroups groups = random_groups(9000, random);
  ASSERT_TRUE(group_rows(*table, groups.get()));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(table->replace(random.below(9000), random_rows(*table, 1, random)));
  }
  const auto records = sink.records();
  ASSERT_GT(records.size(), 104u) << "groups come in parts";
  for (const std::string_view record : records) ASSERT_TRUE(apply_redo(*again, record));
  EXPECT_EQ(again->all_numbers().groups, table->all_numbers().groups);
  EXPECT_TRUE(agree(all_rows(*again), all_rows(*table), false));
  const OwnWork work = grouped_work(Reduction::sum, groups, 8, 9000, 50, random);
  EXPECT_TRUE(agree(reduced(*again, work, scalar_gather()).value(),
                    reduced(*table, work, scalar_gather()).value(), false));
  EXPECT_EQ(audit(*again), std::vector<std::string>{});
  // From any place behind the first part on they are as they were.
  for (std::size_t i = 2; i < records.size(); ++i) ASSERT_TRUE(apply_redo(*again, records[i])) << i;
  EXPECT_EQ(again->all_numbers().groups, table->all_numbers().groups);
  ASSERT_TRUE(group_rows(*table, {}));
  ASSERT_TRUE(apply_redo(*again, sink.records().back()));
  EXPECT_EQ(again->all_numbers().groups, 0u);
  // What cannot be is refused.
  const auto applied = [&](const std::string& record) {
    const auto done = apply_redo(*again, record);
    return done ? RedoFault::invalid : static_cast<RedoFault>(done.error().detail);
  };
  const std::uint32_t id = again->id();
  EXPECT_EQ(applied(groups_record({1, 9000}, {2}, true, true, id)), RedoFault::place);
  EXPECT_EQ(applied(groups_record({1, 1}, {2}, true, true, id)), RedoFault::place);
  EXPECT_EQ(applied(groups_record({1}, {1}, true, true, id)), RedoFault::place);
  EXPECT_EQ(applied(groups_record({1, 2}, {2}, true, true, id + 1)), RedoFault::object);
  EXPECT_EQ(applied(groups_record({1, 2}, {2}, true, true, id)), RedoFault::invalid);
  EXPECT_EQ(again->all_numbers().groups, 1u);
}

// A sink that is full for a while has a grouping wait, and one that has failed ends it.
TEST(EmbeddingRedo, GroupingsWaitForRoom) {
  EmbeddingStore store;
  catalog::RecordingSink sink;
  const auto table = store.create({8});
  ASSERT_TRUE(table->append(row_of(*table, 1)) && table->append(row_of(*table, 2)));
  table->record_to(&sink);
  OwnGroups groups;
  groups.add({0, 1});
  Grouping grouping(*table, groups.get());
  sink.refuse(true);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(grouping.step().value());
  EXPECT_EQ(table->all_numbers().groups, 0u);
  const auto before = table->recorded();
  EXPECT_TRUE(table->shows(before));
  sink.refuse(false);
  ASSERT_TRUE(grouping.step().value());
  EXPECT_FALSE(table->shows(table->recorded())) << "a copy waits for its end";
  ASSERT_FALSE(grouping.step().value());
  EXPECT_EQ(table->all_numbers().groups, 1u);
  EXPECT_TRUE(table->shows(table->recorded()));
  {
    Grouping left(*table, groups.get());
    while (table->shows(table->recorded())) ASSERT_TRUE(left.step().value());
  }
  EXPECT_TRUE(table->shows(table->recorded()));
}

TEST(EmbeddingRedo, RowsAreSeenOnceTheyAreDurable) {
  EXPECT_TRUE(rows_are_seen_once_they_are_durable());
}

TEST(EmbeddingRedo, WhatDoesNotGoOnIsRefused) {
  EmbeddingStore store;
  const auto table = store.create({8});
  RowsRecord fields = good_fields();
  fields.head.object = table->id();
  fields.row = 0;
  fields.row_bytes = 32;
  const std::string row(32, '\0');
  const auto applied = [&](const RowsRecord& with, std::string_view rows) {
    const auto done = apply_redo(*table, record_of(with, rows));
    return done ? RedoFault::invalid : static_cast<RedoFault>(done.error().detail);
  };
  RowsRecord bad = fields;
  bad.head.object += 1;
  EXPECT_EQ(applied(bad, row), RedoFault::object);
  bad = fields;
  bad.row = 1;
  EXPECT_EQ(applied(bad, row), RedoFault::place);
  bad = fields;
  bad.row_bytes = 16;
  bad.rows = 2;
  EXPECT_EQ(applied(bad, row), RedoFault::count);
  bad = fields;
  bad.head.type = static_cast<std::uint8_t>(RedoType::replaced);
  EXPECT_EQ(applied(bad, row), RedoFault::place);
  EXPECT_EQ(table->rows(), 0u);
  EXPECT_EQ(applied(fields, row), RedoFault::invalid);
  EXPECT_EQ(table->rows(), 1u);
}

}  // namespace
}  // namespace espalier::embedding
