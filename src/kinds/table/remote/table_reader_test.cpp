// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/remote/table_reader.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "kinds/table/remote/testing/table_world.hpp"

namespace espalier::place {
namespace {

fabric::sim::Faults in_order() {
  fabric::sim::Faults faults;
  faults.reads_in_order = true;
  return faults;
}

TEST(TableReader, ReadsAnyRangeOfRows) {
  for (const bool ordered : {true, false}) {
    TableWorld world(7, ordered ? in_order() : fabric::sim::Faults{});
    ASSERT_TRUE(world.connected());
    const auto table = world.make(1);
    const auto reader = world.reader_of(world.target_of(*table));
    ASSERT_EQ(*reader->take_count(), TableWorld::kRows);
    const std::uint64_t page = table->schema().rows_per_page();
    const std::pair<std::uint64_t, std::uint64_t> ranges[] = {
        {0, TableWorld::kRows},
        {0, 1},
        {TableWorld::kRows - 1, TableWorld::kRows},
        {page - 1, page},
        {page - 1, page + 1},
        {page, 2 * page + 1},
        {500, 501}};
    for (const auto& [first, end] : ranges) {
      ASSERT_TRUE(reader->seek(first, end));
      std::uint64_t next = first;
      for (;;) {
        const auto piece = reader->next();
        ASSERT_TRUE(piece) << message(piece.error());
        if (piece->rows.empty()) break;
        ASSERT_EQ(piece->first_row, next);
        ASSERT_EQ(world.wrong_with(*piece, 1), "");
        ASSERT_EQ(piece->page_offset, 64 + next % page * table->schema().row_bytes());
        next += piece->rows.size() / table->schema().row_bytes();
      }
      EXPECT_EQ(next, end);
    }
    // What is appended meanwhile is another moment of the table.
    EXPECT_TRUE(table->append(std::vector<std::byte>(5u * table->schema().row_bytes())));
    EXPECT_TRUE(reader->seek(0, TableWorld::kRows));
  }
}

TEST(TableReader, AnEmptyTableHasNoRows) {
  TableWorld world(7, {});
  ASSERT_TRUE(world.connected());
  const auto table = world.make(1, 0);
  const auto reader = world.reader_of(world.target_of(*table));
  EXPECT_EQ(*reader->take_count(), 0u);
  EXPECT_TRUE(reader->next()->rows.empty());
}

TEST(TableReader, WhatIsDroppedIsNeverTakenForTheTable) {
  const std::uint64_t seed = base::seed_from_environment(100);
  TableWorldCounts counts;
  for (std::uint64_t i = 0; i < 150; ++i) {
    fabric::sim::Faults faults = i % 3 == 0 ? fabric::sim::Faults::harsh() : in_order();
    if (i % 3 == 2) {
      faults.tear = 1;
      faults.reads_in_order = false;
    }
    ASSERT_EQ(wrong_with_reading(seed + i, faults, counts), "") << "seed " << seed + i;
  }
  EXPECT_GT(counts.whole, 2u);
  EXPECT_GT(counts.dropped, 5u);
  EXPECT_GT(counts.midway, 0u);
}

/// Words that are changed for as long as this lives: the table's own end goes by them.
class ChangedWords {
 public:
  ~ChangedWords() {
    for (auto at = before_.rbegin(); at != before_.rend(); ++at) {
      std::memcpy(at->first, &at->second, sizeof at->second);
    }
  }
  void change(std::byte* at, std::uint64_t value) {
    std::uint64_t before = 0;
    std::memcpy(&before, at, sizeof before);
    before_.emplace_back(at, before);
    std::memcpy(at, &value, sizeof value);
  }

 private:
  std::vector<std::pair<std::byte*, std::uint64_t>> before_;
};

/// Bytes by chance where the table's own should be: it ends, and reads nothing outside.
TEST(TableReader, AnyBytesMayLieInTheMemory) {
  const std::uint64_t seed = base::seed_from_environment(300);
  std::uint64_t refused = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed + i));
    TableWorld world(seed + i, in_order());
    ASSERT_TRUE(world.connected());
    base::Random& random = world.random();
    const auto table = world.make(1, 100);
    const TableTarget target = world.target_of(*table);
    // Counts, the directory, the page list, the page's header.
    const std::uint64_t header = table->header_offset();
    std::uint64_t part = 0;
    std::memcpy(&part, world.store().region.at(header + wire::kTableDirectoryOffset), sizeof part);
    const std::uint64_t page = wire::Ref{table->page(0).page}.offset();
    const std::uint64_t places[] = {
        header + random.below(24) * 8, header + wire::kTableDirectoryOffset,
        part + wire::kRowPageListOffset, part + wire::kRowPageListOffset + 8,
        page + random.below(8) * 8};
    ChangedWords changed;
    for (int words = 0; words < 3; ++words) {
      const std::uint64_t values[] = {0,      1,    ~std::uint64_t{0}, random(), random() >> 20,
                                      header, page, 3u << 21};
      changed.change(world.store().region.at(places[random.below(std::size(places))]),
                     values[random.below(std::size(values))]);
    }
    const auto reader = world.reader_of(target);
    const auto rows = reader->take_count();
    Result<void> done;
    if (!rows) done = std::unexpected(rows.error());
    if (rows && *rows != 0) {
      const std::uint64_t first = random.below(*rows);
      done = reader->seek(first, *rows - first > 300 ? first + 300 : *rows);
      while (done) {
        const auto piece = reader->next();
        if (!piece) done = std::unexpected(piece.error());
        if (!piece || piece->rows.empty()) break;
      }
    }
    if (done) continue;
    ++refused;
    EXPECT_TRUE(done.error().code == Code::corrupt || done.error().code == Code::dropped)
        << message(done.error());
  }
  EXPECT_GT(refused, 50u);
}

}  // namespace
}  // namespace espalier::place
