// SPDX-License-Identifier: Apache-2.0
// Remote readers of maps that share a clock take the read version from the word that the header
// names. A reader that takes the one in the map's own header sees a state that never existed.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "kinds/hash/remote/testing/hash_world.hpp"
#include "tests/support/cache_scene.hpp"
#include "tests/support/planting.hpp"
#include "tests/support/scene.hpp"

namespace espalier::test {
namespace {

constexpr std::uint64_t kGroupKeys = 400;

Wrong wrong_in_ordered_map(bool in_order, bool groups_gets) {
  CacheScene scene({.in_order = in_order,
                    .groups_gets = groups_gets,
                    .map = {.node_bytes = 1024, .log_bytes = 256, .group = "bank"}});
  scene.fill(kGroupKeys);
  for (int round = 0; round < 3; ++round) {  // until the path is cached
    for (std::uint64_t i = 0; i < kGroupKeys; i += 37) {
      const auto found = scene.get(scattered_key(i));
      if (found != "value" + std::to_string(i)) return "found " + found.value_or("nothing");
    }
  }
  if (groups_gets && in_order && scene.reader().grouped() == 0) return "no group was read";
  return {};
}

Wrong wrong_in_hash_map(bool in_order, bool together) {
  fabric::sim::Faults faults;
  faults.reads_in_order = in_order;
  place::HashWorldOptions options;
  options.together = together;
  options.writes = false;
  options.first_keys = kGroupKeys;
  options.group = "bank";
  place::HashWorld world(1, faults, options);
  if (!world.connected()) return "no pair";
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t i = 0; i < kGroupKeys; i += 37) {
      if (!world.get(place::HashWorld::key_of(i))) return "a key that is there is not found";
    }
  }
  return {};
}

TEST(GroupClockRules, TheVersionOfAnOrderedMapIsItsGroups) {
  for (const bool in_order : {true, false}) {
    for (const bool groups_gets : {true, false}) {
      expect_rejected(tree::Bug::own_clock_read,
                      [&] { return wrong_in_ordered_map(in_order, groups_gets); });
    }
  }
}

TEST(GroupClockRules, TheVersionOfAHashMapIsItsGroups) {
  for (const bool in_order : {true, false}) {
    for (const bool together : {true, false}) {
      expect_rejected(hash::Bug::own_clock_read,
                      [&] { return wrong_in_hash_map(in_order, together); });
    }
  }
}

}  // namespace
}  // namespace espalier::test
