// SPDX-License-Identifier: Apache-2.0
// Reading tables by chunks, as a node answers it: any range, any bytes as a request, clients that
// stop or go, tables that are dropped.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "kinds/table/format/table_calls.hpp"
#include "kinds/table/table_object.hpp"
#include "kinds/table/value.hpp"

namespace espalier::offload {
namespace {

using wire::OffloadId;

constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

class TableReads : public testing::Test {
 protected:
  TableReads()
      : schema_(*table::Schema::parse("id i64 not null, rest char(500) not null")),
        table_(*table::create_table(node_.services().catalog(), node_.services().store.pool, "t",
                                    schema_)) {}
  void fill(std::uint64_t count) {
    std::vector<std::byte> rows(count * schema_.row_bytes());
    for (std::uint64_t i = 0; i < count; ++i) {
      write_value(schema_.column(0), table::Value::of(static_cast<std::int64_t>(i)),
                  rows.data() + i * schema_.row_bytes());
      write_value(schema_.column(1), table::Value::of_text("x"),
                  rows.data() + i * schema_.row_bytes());
    }
    ASSERT_TRUE(table_->append(rows));
  }
  std::string request(std::uint64_t first, std::uint64_t rows) {
    const wire::RowsWanted wanted{first, rows};
    return message_of(request_of(OffloadId::table_read, table_->id(), 7), {},
                      base::bytes_of(wanted));
  }
  /// Numbers of the rows that come; the last answer in `last`.
  std::vector<std::int64_t> read(std::uint64_t first, std::uint64_t rows, Response& last) {
    client_->post(request(first, rows));
    client_->ring();
    std::vector<std::int64_t> ids;
    for (last = node_.wait(client_); !last.answers(); last = node_.wait(client_)) {
      EXPECT_NE(last.header.kind, 0);
      if (last.header.kind == 0) break;
      wire::RowsPlace place{};
      EXPECT_GT(last.payload.size(), sizeof place);
      std::memcpy(&place, last.payload.data(), sizeof place);
      EXPECT_EQ(place.first_row, std::min(first, table_->rows()) + ids.size());
      EXPECT_EQ(place.page_offset,
                64 + place.first_row % schema_.rows_per_page() * schema_.row_bytes());
      const std::size_t bytes = last.payload.size() - sizeof place;
      EXPECT_EQ(bytes % schema_.row_bytes(), 0u);
      EXPECT_LE(bytes, 64u << 10);
      const auto* row = reinterpret_cast<const std::byte*>(last.payload.data()) + sizeof place;
      for (std::size_t at = 0; at < bytes; at += schema_.row_bytes()) {
        ids.push_back(static_cast<std::int64_t>(read_value(schema_.column(0), row + at).number));
      }
    }
    return ids;
  }

  SchedulerFixture node_;
  SchedulerFixture::Client& client_ = node_.connect({64, 4096, 1});
  const table::Schema schema_;
  std::shared_ptr<table::Table> table_;
};

TEST_F(TableReads, AnyRangeOfRows) {
  constexpr std::uint64_t kRows = 9'000;  // more than two pages
  fill(kRows);
  const std::uint64_t page = schema_.rows_per_page();
  const std::pair<std::uint64_t, std::uint64_t> ranges[] = {
      {0, kAll},         {0, 0},        {5, 1},       {page - 1, 2},
      {kRows - 1, kAll}, {kRows, kAll}, {kAll, kAll}, {2 * page, page}};
  for (const auto& [first, rows] : ranges) {
    Response last;
    const std::vector<std::int64_t> ids = read(first, rows, last);
    ASSERT_EQ(last.header.code, 0) << last.payload;
    const std::uint64_t begin = std::min(first, kRows);
    const std::uint64_t count = std::min(rows, kRows - begin);
    ASSERT_EQ(ids.size(), count);
    for (std::size_t i = 0; i < ids.size(); ++i)
      ASSERT_EQ(ids[i], static_cast<std::int64_t>(begin + i));
    EXPECT_EQ(last.header.version, count);
    wire::QueryNumbers numbers{};
    ASSERT_EQ(last.payload.size(), sizeof numbers);
    std::memcpy(&numbers, last.payload.data(), sizeof numbers);
    EXPECT_EQ(numbers.rows_sent, count);
    EXPECT_EQ(numbers.bytes_sent, count * schema_.row_bytes());
  }
}

TEST_F(TableReads, RequestsThatAreNoneAreRefused) {
  fill(10);
  const auto code = [&](std::uint32_t table, std::string_view key, std::string_view payload) {
    return node_.call(client_, request_of(OffloadId::table_read, table, 3), key, payload).code();
  };
  const std::string wanted(base::bytes_of(wire::RowsWanted{0, 1}));
  EXPECT_EQ(code(table_->id() + 1, "", wanted), Code::not_found);
  EXPECT_EQ(code(node_.map(), "", wanted), Code::not_found) << "a map";
  EXPECT_EQ(code(table_->id(), "", wanted.substr(1)), Code::invalid_argument);
  EXPECT_EQ(code(table_->id(), "", wanted + "x"), Code::invalid_argument);
  EXPECT_EQ(code(table_->id(), "key", wanted), Code::invalid_argument);
  EXPECT_EQ(node_.call(client_, request_of(OffloadId::one_sided_table, table_->id(), 4)).code(),
            Code::unsupported)
      << "rings in shared memory";
  EXPECT_EQ(node_.call(client_, request_of(OffloadId::one_sided_table, 9999, 4)).code(),
            Code::not_found);
}

TEST_F(TableReads, ADropEndsThem) {
  fill(9'000);
  auto& reader = node_.connect({64, 64, 1});
  reader->post(request(0, kAll));
  reader->ring();
  node_.turns(1'000);  // the ring is full
  ASSERT_TRUE(node_.services().catalog().drop<table::Table>("t"));
  Response last;
  while (!last.answers()) {
    last = node_.wait(reader);
    ASSERT_NE(last.header.kind, 0);
  }
  EXPECT_EQ(last.code(), Code::dropped);
}

TEST_F(TableReads, AClientThatTakesNothingForTooLongGetsNoMore) {
  fill(9'000);
  node_.services().reader_timeout_ns = 0;  // 30 seconds else
  auto& reader = node_.connect({64, 64, 1});
  reader->post(request(0, kAll));
  reader->ring();
  node_.turns(1'000);  // the ring is full
  ASSERT_TRUE(node_.run_until_idle());
  Response last;
  while (!last.answers()) {
    last = node_.wait(reader);
    ASSERT_NE(last.header.kind, 0);
  }
  EXPECT_EQ(last.code(), Code::busy);
  EXPECT_NE(last.payload.find("no row was taken"), std::string::npos) << last.payload;
}

TEST_F(TableReads, OneThatIsCancelledOrLosesItsClientKeepsNothing) {
  fill(9'000);
  auto& reader = node_.connect({64, 64, 1});
  reader->post(request(0, kAll));
  reader->ring();
  node_.turns(1'000);
  reader->post(message_of(request_of(OffloadId::cancel, 0, 8, 7)));
  reader->ring();
  Response last;
  while (last.header.tag != 7 || !last.answers()) {
    last = node_.wait(reader);
    ASSERT_NE(last.header.kind, 0);
  }
  EXPECT_EQ(last.header.code, 0);
  EXPECT_LT(last.header.version, 9'000u);
  node_.disconnect(reader);
  for (int turns = 1; turns < 60; turns += 7) {
    auto& going = node_.connect({64, 64, 1});
    going->post(request(0, kAll));
    going->ring();
    node_.turns(turns);
    node_.disconnect(going);
    ASSERT_TRUE(node_.run_until_idle());
  }
  EXPECT_EQ(table_.use_count(), 2) << "the catalogue's, and this";
}

}  // namespace
}  // namespace espalier::offload
