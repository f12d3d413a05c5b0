// SPDX-License-Identifier: Apache-2.0
// Records of embedding tables: golden bytes, each field that cannot be, and random work that its
// records make again, from the beginning or from anywhere before.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "catalog/testing/recording_sink.hpp"
#include "catalog/catalog.hpp"
#include "kinds/embedding/apply_redo.hpp"
#include "kinds/embedding/redo_record.hpp"
#include "kinds/embedding/testing/embedding_store.hpp"
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
  EXPECT_EQ(fault(good_fields(static_cast<RedoType>(18))), RedoFault::type);
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
