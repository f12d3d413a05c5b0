// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/page_table.hpp"

#include <gtest/gtest.h>

#include <set>

#include "memory/buffer_pool.hpp"
#include "memory/region.hpp"

namespace espalier::tree {
namespace {

class PageTableTest : public ::testing::Test {
 protected:
  PageTableTest()
      : region_(
            *memory::Region::reserve({.bytes_max = std::uint64_t{64} << 20, .huge_pages = false})),
        pool_(region_) {
    EXPECT_TRUE(table_.create(region_, pool_, 7));
  }
  ~PageTableTest() override { table_.destroy(); }

  memory::Region region_;
  memory::BufferPool pool_;
  PageTable table_;
};

TEST_F(PageTableTest, AFreshTableNamesNothing) {
  EXPECT_EQ(table_.in_use(), 0u);
  EXPECT_EQ(table_.buffers().size(), 2u);
  for (const wire::Lid lid : {0u, 1u, 4096u, 12287u, 12291u, 16384u, ~0u}) {
    EXPECT_FALSE(table_.get(lid)) << lid;
  }
}

TEST_F(PageTableTest, EntriesLieWhereOneSidedReadersFindThem) {
  ASSERT_TRUE(table_.reserve(1));
  const wire::Lid lid = table_.allocate();
  const wire::Ref ref = wire::Ref::make(1 << 22, 5);
  table_.set(lid, ref, 1);
  EXPECT_EQ(table_.get(lid), ref);
  const std::byte* directory = region_.at(table_.directory_offset());
  const auto page = base::load_plain<std::uint64_t>(directory + 8 * (lid >> 12));
  EXPECT_EQ(page + 8 * (lid & 4095), table_.entry_offset(lid));
  EXPECT_EQ(base::load_plain<std::uint64_t>(region_.at(table_.entry_offset(lid))), ref.bits);
  for (const auto& [offset, size_class] : table_.buffers()) {
    const auto header = base::load_plain<wire::BufferHeader>(region_.at(offset));
    EXPECT_EQ(header.map_id, 7u);
    EXPECT_EQ(header.superseded, wire::kLive);
  }
}

TEST_F(PageTableTest, LidsAreDistinctAndAvoidTheHeadersOfPages) {
  std::set<wire::Lid> lids;
  for (int i = 0; i < 10000; ++i) {
    ASSERT_TRUE(table_.reserve(1));
    const wire::Lid lid = table_.allocate();
    ASSERT_GE(lid % wire::kTablePageEntries, wire::kHeaderWords);
    ASSERT_NE(table_.entry_offset(lid), 0u);
    ASSERT_TRUE(lids.insert(lid).second);
  }
  EXPECT_EQ(table_.in_use(), 10000u);
  EXPECT_EQ(table_.buffers().size(), 4u);  // the directory and three pages
}

TEST_F(PageTableTest, ReservedLidsNeedNoMemory) {
  ASSERT_TRUE(table_.reserve(9000));
  pool_.fail_after(0);
  for (int i = 0; i < 9000; ++i) (void)table_.allocate();
  EXPECT_TRUE(pool_.failure_pending());
  const auto refused = table_.reserve(9000);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::out_of_memory);
  EXPECT_TRUE(table_.reserve(9000));
}

TEST_F(PageTableTest, AReleasedLidIsForgottenAndComesBack) {
  ASSERT_TRUE(table_.reserve(2));
  const wire::Lid lid = table_.allocate();
  table_.set(lid, wire::Ref::make(512, 1), 1);
  table_.release(lid);
  EXPECT_FALSE(table_.get(lid));
  EXPECT_EQ(table_.in_use(), 0u);
  EXPECT_EQ(table_.allocate(), lid);
}

TEST(PageTable, FailsWithoutMemoryAndLeavesNothing) {
  memory::Region region =
      *memory::Region::reserve({.bytes_max = std::uint64_t{64} << 20, .huge_pages = false});
  memory::BufferPool pool(region);
  for (const std::int64_t successes : {0, 1}) {
    pool.fail_after(successes);
    PageTable table;
    EXPECT_FALSE(table.create(region, pool, 1));
    for (memory::SizeClass cls = 0; cls < memory::kClasses; ++cls) {
      EXPECT_EQ(pool.stats(cls).in_use, 0u);
    }
  }
}

TEST(PageTable, GivesAllItsMemoryBack) {
  memory::Region region =
      *memory::Region::reserve({.bytes_max = std::uint64_t{64} << 20, .huge_pages = false});
  memory::BufferPool pool(region);
  PageTable table;
  ASSERT_TRUE(table.create(region, pool, 1));
  ASSERT_TRUE(table.reserve(20000));
  table.destroy();
  for (memory::SizeClass cls = 0; cls < memory::kClasses; ++cls) {
    EXPECT_EQ(pool.stats(cls).in_use, 0u);
  }
}

}  // namespace
}  // namespace espalier::tree
