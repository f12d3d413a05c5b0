// SPDX-License-Identifier: Apache-2.0
#include "memory/staged_bytes.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "memory/region.hpp"

namespace espalier::memory {
namespace {

class StagedBytesTest : public ::testing::Test {
 protected:
  StagedBytes stage(std::string_view bytes, std::size_t copied = 0) {
    const SizeClass cls = BufferPool::class_of(kBehind + bytes.size());
    return {pool_, cls, *pool_.allocate(cls), kBehind, bytes, copied};
  }
  [[nodiscard]] std::uint64_t in_use(std::size_t bytes) const {
    return pool_.stats(BufferPool::class_of(kBehind + bytes)).in_use;
  }

  static constexpr std::size_t kBehind = 40;
  Region region_ = *Region::reserve({.bytes_max = std::uint64_t{16} << 20, .huge_pages = false});
  BufferPool pool_{region_};
};

TEST_F(StagedBytesTest, AreCopiedPieceByPieceBehindTheirHead) {
  const std::string bytes = "0123456789";
  StagedBytes staged = stage(bytes, 2);
  std::memcpy(staged.at() + kBehind, "ab", 2);
  EXPECT_FALSE(staged.copy(5));
  EXPECT_FALSE(staged.is_whole());
  EXPECT_TRUE(staged.copy(100));
  EXPECT_EQ(std::memcmp(staged.at() + kBehind, "ab23456789", 10), 0) << "the first were there";
  EXPECT_TRUE(stage("").is_whole());
}

TEST_F(StagedBytesTest, GiveTheirBufferBackUnlessItWasTaken) {
  const std::string bytes(1000, 'v');
  {
    StagedBytes first = stage(bytes);
    std::optional<StagedBytes> second(std::move(first));
    EXPECT_EQ(in_use(1000), 1u);
    second = stage(bytes);
    EXPECT_EQ(in_use(1000), 1u) << "what was there before is given back";
  }
  EXPECT_EQ(in_use(1000), 0u);
  std::uint64_t taken = 0;
  SizeClass cls = 0;
  {
    StagedBytes staged = stage(bytes);
    staged.copy(bytes.size());
    taken = staged.offset();
    cls = staged.size_class();
    staged.take();
  }
  EXPECT_EQ(in_use(1000), 1u);
  pool_.release(taken, cls);
}

}  // namespace
}  // namespace espalier::memory
