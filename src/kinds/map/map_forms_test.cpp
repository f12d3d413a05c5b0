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
    const MapOptions options{.node_bytes = 1024,
                             .log_bytes = 128,
                             .versions = versions,
                             .snapshot_bytes_max = 77,
                             .group = "bank"};
    const wire::MapShape shape = shape_of(options, 9);
    EXPECT_EQ(shape.key_bytes_max, 9u);
    const MapOptions back = options_of(shape, "bank", 3);
    EXPECT_EQ(back.node_bytes, 1024u);
    EXPECT_EQ(back.log_bytes, 128u);
    EXPECT_EQ(back.versions, versions);
    EXPECT_EQ(back.snapshot_bytes_max, 77u);
    EXPECT_EQ(shape.group_bytes, 4u);
    EXPECT_EQ(back.group, "bank");
    EXPECT_EQ(back.durability, Durability::sync);
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
