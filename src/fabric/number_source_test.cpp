// SPDX-License-Identifier: Apache-2.0
#include "fabric/number_source.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <set>

namespace espalier::fabric {
namespace {

TEST(NumberSource, OfASeedIsRepeated) {
  NumberSource source = NumberSource::of_seed(7);
  base::Random same(7);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(source.draw(), same());
}

TEST(NumberSource, OfTheSystemIsNever) {
  constexpr std::size_t kMany = 1000;  // many batches
  auto one = *NumberSource::of_system();
  auto other = *NumberSource::of_system();
  std::set<std::uint64_t> drawn;
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < kMany; ++i) {
    for (NumberSource* source : {&one, &other}) {
      const std::uint64_t number = source->draw();
      drawn.insert(number);
      bits += static_cast<std::uint64_t>(std::popcount(number));
    }
  }
  EXPECT_EQ(drawn.size(), 2 * kMany);
  // Half of all bits, to within 14 times what chance makes of it.
  EXPECT_NEAR(static_cast<double>(bits), 64.0 * kMany, 14 * 180.0);
}

}  // namespace
}  // namespace espalier::fabric
