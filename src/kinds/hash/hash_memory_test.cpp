// SPDX-License-Identifier: Apache-2.0
// How a map grows, and what it does where memory is short.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "kinds/hash/testing/hash_fixture.hpp"

namespace espalier::hash {
namespace {

// All segments are due at about the same time, one is split after the other, and some have no room
// for their turn: they are split at once, and the put moves bins of its own segment alone.
TEST(HashMemory, APutMovesFewBins) {
  HashFixture f({.partitions = 1, .seed = HashSeed{5, 6}});
  const Partition& partition = f.map->partitions().front();
  std::uint64_t longest = 0;
  for (int i = 0; i < 150'000; ++i) {
    const std::uint64_t before = partition.bins_moved();
    f.put("key" + std::to_string(i), "v");
    longest = std::max(longest, partition.bins_moved() - before);
    if (i % 25'000 == 0) {
      ASSERT_EQ(f.faults(), "");
    }
  }
  EXPECT_GT(partition.splits(), 100u);
  EXPECT_GE(longest, Partition::kBinsPerWrite);
  EXPECT_LE(longest, 40u);
  EXPECT_EQ(f.faults(), "");
}

}  // namespace
}  // namespace espalier::hash
