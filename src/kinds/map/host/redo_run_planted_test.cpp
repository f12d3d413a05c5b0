// SPDX-License-Identifier: Apache-2.0
// Recovery of a map that breaks one rule is noticed. Without a bug nothing is wrong: see
// redo_run_test.cpp.
#include <gtest/gtest.h>

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/planted.hpp"
#include "kinds/map/host/redo_run.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"
#include "kinds/map/testing/redo_maps.hpp"

namespace espalier::tree {
namespace {

class PlantedRuns : public RedoMaps {
 protected:
  /// Makes the map in the other store, and applies its first records one by one, the rest as a run.
  MapCore& make_again(std::size_t one_by_one = 0) {
    const auto records = sink_.records();
    for (std::size_t i = 0; i <= one_by_one; ++i) EXPECT_TRUE(apply(records[i])) << "record " << i;
    MapCore& made = *other(user_.map());
    std::size_t applied = 0;
    RedoRunState state;
    const auto rest = std::span(records).subspan(1 + one_by_one);
    EXPECT_TRUE(apply_redo_run(other_context_, made, rest, applied, state));
    return made;
  }
  std::vector<std::pair<std::string, std::string>> items_again() {
    return MapUser(other_context_, other(user_.map())).items();
  }

  MapUser user_{context_, create({.node_bytes = 1024})};
};

TEST_F(PlantedRuns, RecordsOfOneKeyThatPassEachOtherAreNoticed) {
  const std::string value(100'000, 'v');  // it takes longer than a short one
  for (const char* const key : {"a", "b", "c"}) {
    user_.put(key, value);
    user_.put(key, "last");
  }
  const base::Planted planted(Bug::redo_key_twice_in_flight);
  make_again();
  EXPECT_NE(items_again(), user_.items());
}

TEST_F(PlantedRuns, VersionsBelowThoseOfRecordsAreNoticed) {
  user_.map().clock.go_on_above(5000);
  for (int i = 0; i < 40; ++i) user_.put(std::to_string(i * 7 % 40), "value");
  const base::Planted planted(Bug::redo_version_ignored);
  EXPECT_LT(make_again().clock.taken(), user_.map().clock.taken());
}

TEST_F(PlantedRuns, AKeyThatIsAppendedThoughItIsThereIsNoticed) {
  constexpr int kBefore = 40;
  for (int i = 0; i < kBefore; ++i) user_.put(TreeFixture::numbered(i), "value");
  for (int i = kBefore - 1; i < 2 * kBefore; ++i) user_.put(TreeFixture::numbered(i), "other");
  const base::Planted planted(Bug::appended_over_last_key);
  make_again(kBefore);
  EXPECT_NE(items_again(), user_.items());
}

/// Whether a full store whose objects have used up their reserve takes erases once it is refilled.
bool takes_erases_once_refilled() {
  StoreCore store = make_store(std::uint64_t{8} << 20);
  ThreadContext context(store, std::move(*store.epochs.join()), 0);
  const auto map = *create_map(store, "map", {.node_bytes = 8192});
  MapUser user(context, map);
  int keys = 0;
  while (user.put(TreeFixture::numbered(keys), std::string(100, 'v')).ok) ++keys;
  {
    const std::lock_guard lock(map->spare_mutex);
    map->spare_nodes.clear();
  }
  while (context.cache.allocate(map->node_class)) {
  }
  EXPECT_TRUE(store.refill_reserves());
  for (int i = 0; i < keys; ++i) {
    if (!user.write(Op::erase, TreeFixture::numbered(i)).ok) return false;
  }
  return true;
}

TEST(PlantedReserve, AFullStoreThatRefusesErasesAfterRecoveryIsNoticed) {
  EXPECT_TRUE(takes_erases_once_refilled());
  const base::Planted planted(Bug::reserve_not_refilled);
  EXPECT_FALSE(takes_erases_once_refilled());
}

}  // namespace
}  // namespace espalier::tree
