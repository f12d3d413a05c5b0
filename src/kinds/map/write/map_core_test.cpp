// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/map_core.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "kinds/map/testing/tree_fixture.hpp"

namespace espalier::tree {
namespace {

// Spares are what erases take in a full store: a map that is made has all of them.
TEST(MapCore, NoneIsMadeWithoutItsSpareNodes) {
  TreeFixture tree({}, std::uint64_t{16} << 20);
  std::vector<std::unique_ptr<MapCore>> maps;
  for (;;) {
    const auto number = static_cast<std::uint32_t>(maps.size() + 2);
    auto made = MapCore::create(tree.store(), number, "map " + std::to_string(number), {});
    if (!made) {
      EXPECT_EQ(made.error().code, Code::out_of_memory);
      break;
    }
    maps.push_back(*std::move(made));
    ASSERT_EQ(maps.back()->spare_nodes.size(), maps.back()->spares_wanted()) << number;
  }
  EXPECT_GT(maps.size(), 10u);
  // What a refused one had taken serves the next.
  maps.pop_back();
  EXPECT_TRUE(MapCore::create(tree.store(), 1000, "again", {}));
}

}  // namespace
}  // namespace espalier::tree
