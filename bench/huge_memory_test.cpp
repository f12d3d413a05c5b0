// SPDX-License-Identifier: Apache-2.0
#include "bench/huge_memory.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bench/resident.hpp"

namespace espalier::bench {
namespace {

TEST(HugeBuffer, IsAlignedAndZeroed) {
  const HugeBuffer buffer(3'000'000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % kHugePageBytes, 0U);
  EXPECT_EQ(buffer.bytes(), 2 * kHugePageBytes);
  for (std::size_t at = 0; at < buffer.bytes(); at += 4096) {
    ASSERT_EQ(buffer.data()[at], std::byte{0});
  }
}

TEST(HugeBuffer, MovesItsMemory) {
  HugeBuffer a(1);
  std::byte* const at = a.data();
  HugeBuffer b(std::move(a));
  EXPECT_EQ(b.data(), at);
  b = HugeBuffer(1);
  EXPECT_NE(b.data(), nullptr);
}

TEST(HugeArena, BlocksAreAlignedApartAndUsedAgain) {
  HugeArena arena(kHugePageBytes);
  std::set<void*> blocks;
  for (int i = 0; i < 20000; ++i) EXPECT_TRUE(blocks.insert(arena.allocate(250, 8)).second);
  void* previous = nullptr;
  for (void* block : blocks) {
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(block) % 16, 0U);
    if (previous != nullptr) {
      ASSERT_GE(static_cast<char*>(block) - static_cast<char*>(previous), 256);
    }
    previous = block;
  }
  arena.deallocate(*blocks.begin(), 250);
  EXPECT_EQ(arena.allocate(256, 16), *blocks.begin());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.allocate(1, 4096)) % 4096, 0U);
  EXPECT_NE(arena.allocate(3 * kHugePageBytes, 8), nullptr);
}

TEST(HugeArena, CopiesLieSideBySide) {
  HugeArena arena;
  const std::string_view a = arena.copy("abc");
  const std::string_view b = arena.copy("defg");
  EXPECT_EQ(a, "abc");
  EXPECT_EQ(b, "defg");
  EXPECT_EQ(a.data() + 3, b.data());
  EXPECT_EQ(arena.copy("").size(), 0U);
  arena.clear();
  EXPECT_EQ(arena.copy("x").data(), a.data());
}

TEST(ArenaAllocator, ServesContainers) {
  HugeArena arena;
  using Pair = std::pair<const int, int>;
  std::map<int, int, std::less<>, ArenaAllocator<Pair>> map{std::less<>(),
                                                            ArenaAllocator<Pair>(&arena)};
  for (int i = 0; i < 1000; ++i) map[i] = i;
  for (int i = 0; i < 1000; i += 2) map.erase(i);
  EXPECT_EQ(map.size(), 500U);
}

TEST(Resident, SeesMemoryThatIsTouched) {
  const Resident before = resident();
  ASSERT_GT(before.bytes, 0U);
  const HugeBuffer buffer(std::size_t{32} << 20);
  for (std::size_t at = 0; at < buffer.bytes(); at += 4096) buffer.data()[at] = std::byte{1};
  const Resident after = resident();
  EXPECT_GE(after.bytes - before.bytes, buffer.bytes() * 9 / 10);
  EXPECT_NE(page_message(before, after).find("MiB on huge pages"), std::string::npos);
}

}  // namespace
}  // namespace espalier::bench
