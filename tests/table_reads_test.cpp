// SPDX-License-Identifier: Apache-2.0
// Raw reads of tables at each place: in this process, by chunks from a node, and by READs of its
// memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "client/store_impl.hpp"
#include "tests/support/tables_anywhere.hpp"

namespace espalier {
namespace {

using namespace literals;
using std::chrono::year;

constexpr const char* kPlaces[] = {"embedded",  "unix",  "shm", "shm_send",      "roce",
                                   "roce_send", "memif", "ofi", "shm_one_sided", "roce_one_sided"};

class TableReads : public test::TablesAnywhere {
 protected:
  [[nodiscard]] static bool alone() { return std::string_view(GetParam()).ends_with("_one_sided"); }
  [[nodiscard]] std::uint64_t bytes_read_alone() const {
    return client::StoreImpl::of(*store_).read_traffic().bytes;
  }
};
INSTANTIATE_TEST_SUITE_P(By, TableReads, ::testing::ValuesIn(kPlaces), test::way_name);
INSTANTIATE_TEST_SUITE_P(Device, TableReads, ::testing::Values("device"), test::way_name);

/// A device takes no encrypted rows.
class TableReadsEncrypted : public TableReads {};
INSTANTIATE_TEST_SUITE_P(By, TableReadsEncrypted, ::testing::ValuesIn(kPlaces), test::way_name);

struct Read {
  std::vector<std::string> rows;
  std::size_t pieces = 0;
  std::optional<TableError> error;
};

Read read_all(TableResult<RowStream> stream) {
  Read read;
  if (!stream) {
    read.error = stream.error();
    return read;
  }
  for (;;) {
    const auto piece = stream->next();
    if (!piece) {
      read.error = piece.error();
      return read;
    }
    if (!*piece) break;
    ++read.pieces;
    for (const Row row : **piece) {
      std::string line;
      for (std::size_t i = 0; i < (*piece)->columns().size(); ++i) {
        line += row.value(i).to_text() + "|";
      }
      read.rows.push_back(std::move(line));
    }
  }
  EXPECT_EQ(stream->stats().rows_sent, read.rows.size());
  return read;
}

TEST_P(TableReads, RowsAreThoseThatAQueryGives) {
  open();
  const Table table = make("sales");
  EXPECT_TRUE(read_all(table.read_rows()).rows.empty());
  constexpr std::uint64_t kRows = 100'000;  // three pages
  fill(table, 1);
  fill(table, kRows - 1);
  const Read whole = read_all(table.read_rows());
  ASSERT_FALSE(whole.error) << message(*whole.error);
  const Read queried = read_all(table.query().stream());
  ASSERT_EQ(whole.rows.size(), kRows);
  EXPECT_EQ(whole.rows, queried.rows);
  EXPECT_GT(whole.pieces, 4u);
  EXPECT_EQ(bytes_read_alone() > kRows * table.schema().row_bytes(), alone());
  const std::uint64_t page = (std::uint64_t{2} << 20) / table.schema().row_bytes();
  const std::pair<std::uint64_t, std::uint64_t> ranges[] = {{0, 0},
                                                            {0, 1},
                                                            {1, 1},
                                                            {page - 3, 6},
                                                            {kRows - 1, 1},
                                                            {kRows - 1, 5},
                                                            {kRows, 5},
                                                            {2 * kRows, 1},
                                                            {page + 1, 2 * page},
                                                            {~std::uint64_t{0}, ~std::uint64_t{0}}};
  for (const auto& [first, rows] : ranges) {
    const Read some = read_all(table.read_rows({.first_row = first, .rows = rows}));
    ASSERT_FALSE(some.error) << message(*some.error);
    const std::uint64_t begin = std::min(first, kRows);
    const std::uint64_t end = begin + std::min(rows, kRows - begin);
    EXPECT_EQ(some.rows,
              std::vector<std::string>(whole.rows.begin() + static_cast<std::ptrdiff_t>(begin),
                                       whole.rows.begin() + static_cast<std::ptrdiff_t>(end)))
        << first << ", " << rows;
  }
}

TEST_P(TableReads, TheyAreOfOneMoment) {
  open();
  const Table table = make("t", "id i64 not null, rest char(200) not null");
  const auto append = [&](std::int64_t count) {
    RowWriter writer = table.writer();
    for (std::int64_t i = 0; i < count; ++i) writer.add(i, "x");
    ASSERT_TRUE(writer.commit());
  };
  append(30'000);
  auto stream = table.read_rows();
  ASSERT_TRUE(stream) << message(stream.error());
  const auto first = stream->next();
  ASSERT_TRUE(first && *first);
  std::size_t rows = (*first)->size();
  append(5'000);
  for (;;) {
    const auto piece = stream->next();
    ASSERT_TRUE(piece) << message(piece.error());
    if (!*piece) break;
    rows += (*piece)->size();
  }
  EXPECT_EQ(rows, 30'000u);
  EXPECT_EQ(*stream->next(), std::nullopt);
  EXPECT_EQ(read_all(table.read_rows()).rows.size(), 35'000u);
}

// Another table takes the memory immediately.
TEST_P(TableReads, ADroppedTableIsToldAndNoOthersRowsCome) {
  open();
  const auto append = [](const Table& table, std::string_view mark) {
    RowWriter writer = table.writer();
    for (int i = 0; i < 20'000; ++i) writer.add(i, mark);
    ASSERT_TRUE(writer.commit());
  };
  constexpr const char* kSchema = "id i64 not null, mark char(500) not null";
  const Table table = make("t", kSchema);
  append(table, "mine");
  auto stream = table.read_rows();
  ASSERT_TRUE(stream) << message(stream.error());
  ASSERT_TRUE(stream->next());
  ASSERT_TRUE(store_->drop_table("t"));
  append(make("t", kSchema), "others");
  std::optional<TableError> error;
  while (!error) {
    const auto rows = stream->next();
    if (!rows) error = rows.error();
    if (!rows) break;
    ASSERT_TRUE(*rows) << "it came to its end";
    for (const Row row : **rows) ASSERT_EQ(row.get<std::string_view>(1), "mine");
  }
  EXPECT_EQ(error->error.code, Code::dropped);
  EXPECT_FALSE(stream->next());
  const Read late = read_all(table.read_rows());
  ASSERT_TRUE(late.error);
  EXPECT_TRUE(late.error->error.code == Code::dropped || late.error->error.code == Code::not_found);
}

TEST_P(TableReadsEncrypted, RowsAreDecryptedHereAndNoKeyTravels) {
  open();
  const TableKey key = *TableKey::parse("000102030405060708090a0b0c0d0e0f");
  const Table plain = make("plain");
  const auto secret =
      store_->create_table("secret", plain.schema(), {.encrypted = true, .key = key});
  ASSERT_TRUE(secret) << message(secret.error());
  for (const std::int64_t count : {3, 60'000, 500}) {
    fill(plain, count);
    fill(*secret, count);
  }
  const Read wanted = read_all(plain.read_rows());
  const Read read = read_all(secret->read_rows());
  ASSERT_FALSE(read.error) << message(*read.error);
  EXPECT_EQ(read.rows, wanted.rows);
  const Read some = read_all(secret->read_rows({.first_row = 43'000, .rows = 1'501}));
  EXPECT_EQ(some.rows,
            std::vector<std::string>(wanted.rows.begin() + 43'000, wanted.rows.begin() + 44'501));
  const Read closed = read_all(store_->open_table("secret")->read_rows());
  ASSERT_TRUE(closed.error);
  EXPECT_EQ(closed.error->error.code, Code::invalid_argument);
}

TEST_P(TableReads, TheyEndWhenTheyAreNotWantedAnyMore) {
  open();
  const Table table = make("sales");
  fill(table, 100'000);
  for (int i = 0; i < 12; ++i) {
    auto stream = table.read_rows();
    ASSERT_TRUE(stream) << message(stream.error());
    ASSERT_TRUE(stream->next());
    if (i % 2 != 0) continue;
    stream->cancel();
    EXPECT_EQ(*stream->next(), std::nullopt);
  }
  std::stop_source stop;
  auto stopped = table.read_rows({.stop = stop.get_token()});
  ASSERT_TRUE(stopped && stopped->next());
  stop.request_stop();
  const auto after = stopped->next();
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().error, (Error{Code::system, 0, ECANCELED}));
  const Read late = read_all(table.read_rows({.deadline = std::chrono::steady_clock::now()}));
  ASSERT_TRUE(late.error);
  EXPECT_EQ(late.error->error, (Error{Code::system, 0, ETIMEDOUT}));
  EXPECT_EQ(*table.rows(), 100'000u);
}

TEST_P(TableReads, MemoryDoesNotGrowWithTheTable) {
  open();
  const Table table = make("t", "id i64 not null, rest char(1000) not null");
  for (int i = 0; i < 4; ++i) {
    RowWriter writer = table.writer();
    for (int row = 0; row < 10'000; ++row) writer.add(row, "x");
    ASSERT_TRUE(writer.commit());
  }
  auto stream = table.read_rows();
  ASSERT_TRUE(stream && stream->next());
  const std::size_t before = test::heap_bytes();
  std::size_t most = before;
  for (auto piece = stream->next(); piece && *piece; piece = stream->next()) {
    most = std::max(most, test::heap_bytes());
  }
  EXPECT_LT(most - before, std::size_t{8} << 20) << "of 40 MB";
}

// A lease lapses where its reader takes long between two pieces, and there is no keeping it.
using TableReadsAlone = TableReads;
INSTANTIATE_TEST_SUITE_P(By, TableReadsAlone, ::testing::Values("shm_one_sided", "roce_one_sided"),
                         test::way_name);
TEST_P(TableReadsAlone, AReaderMayTakeItsTime) {
  open();
  const Table table = make("t", "id i64 not null, rest char(500) not null");
  RowWriter writer = table.writer();
  for (int i = 0; i < 20'000; ++i) writer.add(i, "x");
  ASSERT_TRUE(writer.commit());
  auto stream = table.read_rows();
  ASSERT_TRUE(stream) << message(stream.error());
  std::int64_t next = 0;
  int pieces = 0;
  for (;;) {
    const auto piece = stream->next();
    ASSERT_TRUE(piece) << message(piece.error());
    if (!*piece) break;
    for (const Row row : **piece) ASSERT_EQ(row.get<std::int64_t>(0), next++);
    // The node takes it for dead, and its key away.
    if (++pieces != 2) continue;
    while (node_->store().leases.size() != 0) std::this_thread::yield();
  }
  EXPECT_EQ(next, 20'000);
  EXPECT_GT(bytes_read_alone(), 20'000u * table.schema().row_bytes());
  // Maps of the same store are still read one-sidedly.
  Map map = *store_->open_map("default");
  ASSERT_TRUE(map.put("k", "v"));
  EXPECT_EQ(map.get("k")->value().value, "v");
}

}  // namespace
}  // namespace espalier
