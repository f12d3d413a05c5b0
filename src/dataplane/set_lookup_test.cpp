// SPDX-License-Identifier: Apache-2.0
#include "dataplane/set_lookup.hpp"

#include <gtest/gtest.h>

#include <array>

#include "base/random.hpp"

namespace espalier::dataplane {
namespace {

// Numbers at which one of the halves changes its sign, its value, or whether it borrows.
constexpr std::array<std::uint64_t, 18> kBorders{0,
                                                 1,
                                                 2,
                                                 0x7FFF'FFFE,
                                                 0x7FFF'FFFF,
                                                 0x8000'0000,
                                                 0x8000'0001,
                                                 0xFFFF'FFFE,
                                                 0xFFFF'FFFF,
                                                 0x1'0000'0000,
                                                 0x1'0000'0001,
                                                 0x7FFF'FFFF'FFFF'FFFF,
                                                 0x8000'0000'0000'0000,
                                                 0x8000'0000'0000'0001,
                                                 0x8000'0000'8000'0000,
                                                 0xFFFF'FFFF'0000'0000,
                                                 0xFFFF'FFFF'FFFF'FFFE,
                                                 0xFFFF'FFFF'FFFF'FFFF};

TEST(SetLookup, HalvesCompareAsTheWholeDoes) {
  for (const std::uint64_t key : kBorders) {
    for (const std::uint64_t pivot : kBorders) {
      ASSERT_EQ(reaches_by_halves(key, pivot), key >= pivot) << key << " " << pivot;
    }
  }
  base::Random random(base::seed_from_environment(1));
  for (int i = 0; i < 2'000'000; ++i) {
    const std::uint64_t key = random();
    std::uint64_t pivot = random();
    if (i % 3 == 1) pivot = (key & ~std::uint64_t{0xFFFF'FFFF}) | (pivot & 0xFFFF'FFFF);
    if (i % 3 == 2) pivot = key + random.below(5) - 2;
    ASSERT_EQ(reaches_by_halves(key, pivot), key >= pivot) << key << " " << pivot;
  }
}

TEST(SetLookup, BitsAreOnesUpToTheLastPivotReached) {
  const std::array<std::uint64_t, 5> pivots{10, 20, 30, 40, ~std::uint64_t{0}};
  EXPECT_EQ(reached_bits(pivots, 0), 0b00000u);
  EXPECT_EQ(reached_bits(pivots, 10), 0b00001u);
  EXPECT_EQ(reached_bits(pivots, 39), 0b00111u);
  EXPECT_EQ(reached_bits(pivots, ~std::uint64_t{0}), 0b11111u);
  EXPECT_EQ(way_of(0), 0u);
  EXPECT_EQ(way_of(0b00111), 3u);
}

}  // namespace
}  // namespace espalier::dataplane
