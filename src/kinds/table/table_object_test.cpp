// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/table_object.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <span>

#include "kinds/table/format/table_calls.hpp"
#include "kinds/table/snapshot.hpp"
#include "kinds/table/testing/random_table.hpp"

namespace espalier::table {
namespace {

TEST(TableObjects, FindsByNameAndId) {
  TableStore store;
  const auto b = store.tables.create("b", schema_of("x i64")).value();
  const auto a = store.tables.create("a", schema_of("x i8")).value();
  EXPECT_EQ(store.tables.catalog.names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(store.tables.catalog.open<Table>("a"), a);
  EXPECT_EQ(store.tables.catalog.find<Table>(b->id()), b);
  EXPECT_NE(a->id(), b->id());
  EXPECT_EQ(store.tables.catalog.find<Table>(77), nullptr);
  EXPECT_EQ(store.tables.catalog.open<Table>("c").error().code, Code::not_found);
  EXPECT_EQ(store.tables.drop("c").error().code, Code::not_found);
  EXPECT_EQ(store.tables.create("a", schema_of("x i8")).error().code, Code::already_exists);
  EXPECT_EQ(store.tables.create("", schema_of("x i8")).error().code, Code::invalid_argument);
  EXPECT_EQ(store.tables.create(std::string(256, 'n'), schema_of("x i8")).error().code,
            Code::invalid_argument);
}

TEST(TableObjects, ADropEndsScansAndGivesMemoryBackWithTheLastReader) {
  TableStore store;
  const std::uint64_t before = store.region.taken_bytes();
  auto table = store.tables.create("t", schema_of("x i64")).value();
  const std::uint32_t id = table->id();
  ASSERT_TRUE(table->append(std::vector<std::byte>(std::size_t{16} * 200'000)));
  {
    const TableSnapshot scan(table);
    EXPECT_EQ(scan.pages(), 2u);
    const RowSpan rows = scan.page(0).value();
    ASSERT_TRUE(store.tables.drop("t"));
    EXPECT_EQ(store.tables.catalog.find<Table>(id), nullptr);
    EXPECT_EQ(store.tables.catalog.open<Table>("t").error().code, Code::not_found);
    EXPECT_EQ(scan.page(1).error().code, Code::dropped);
    EXPECT_EQ(scan.rows_from(0).error().code, Code::dropped);
    EXPECT_EQ(table->append(std::vector<std::byte>(16)).error().error.code, Code::dropped);
    table = nullptr;
    EXPECT_EQ(rows[0][0], std::byte{0}) << "what a reader holds stays where it is";
    EXPECT_GE(store.region.taken_bytes(), before + 2 * wire::kRowPageBytes);
  }
  store.pool.trim();
  EXPECT_EQ(store.region.taken_bytes(), before);
  const auto next = store.tables.create("t", schema_of("x i64")).value();
  EXPECT_NE(next->id(), id);
}

TEST(TableObjects, TellWhatTheyAreMadeOf) {
  TableStore store;
  const Schema schema = schema_of("x i64, y text(9) null");
  const auto table = store.tables.create("t", schema).value();
  ASSERT_TRUE(table->append(std::vector<std::byte>(std::size_t{3} * schema.row_bytes())));
  const std::string text = table->description();
  wire::TableFacts facts{};
  ASSERT_GT(text.size(), sizeof facts);
  std::memcpy(&facts, text.data(), sizeof facts);
  EXPECT_EQ(facts.rows, 3u);
  EXPECT_EQ(facts.row_bytes, schema.row_bytes());
  EXPECT_EQ(facts.schema_bytes, text.size() - sizeof facts);
  const auto decoded = Schema::decode(std::as_bytes(std::span(text)).subspan(sizeof facts));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->row_bytes(), schema.row_bytes());
  EXPECT_EQ(decoded->columns().size(), 2u);
  EXPECT_EQ(table->numbers().entries, 3u);
  EXPECT_EQ(table->numbers().memory_bytes, facts.memory_bytes);
}

}  // namespace
}  // namespace espalier::table
