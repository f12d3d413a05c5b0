// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/map_forms.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace espalier::tree {
namespace {

TEST(MapForms, OptionsComeBackAsTheyWere) {
  for (const bool versions : {false, true}) {
    const MapOptions options{1024, 128, versions, 77};
    const wire::MapShape shape = shape_of(options, 9);
    EXPECT_EQ(shape.key_bytes_max, 9u);
    const MapOptions back = options_of(shape);
    EXPECT_EQ(back.node_bytes, 1024u);
    EXPECT_EQ(back.log_bytes, 128u);
    EXPECT_EQ(back.versions, versions);
    EXPECT_EQ(back.snapshot_bytes_max, 77u);
  }
}

TEST(MapForms, EveryNumberComesBackAsItWas) {
  std::array<std::uint64_t, sizeof(wire::MapNumbers) / sizeof(std::uint64_t)> words{};
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = i + 1;
  const auto numbers = std::bit_cast<wire::MapNumbers>(words);
  const wire::MapNumbers back = numbers_of(stats_of(numbers));
  EXPECT_EQ(std::bit_cast<decltype(words)>(back), words);
  EXPECT_EQ(stats_of(numbers).height, numbers.height);
}

}  // namespace
}  // namespace espalier::tree
