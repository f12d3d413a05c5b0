// SPDX-License-Identifier: Apache-2.0
// The checks of regions notice each broken rule.
#include <gtest/gtest.h>

#include "kinds/region/planted_region_bugs.hpp"
#include "kinds/region/region_object.hpp"
#include "store/store_core.hpp"

namespace espalier::region {
namespace {

void expect_noticed(Bug bug, bool (*check)()) {
  EXPECT_TRUE(check());
  {
    const base::Planted planted(bug);
    EXPECT_FALSE(check());
  }
  EXPECT_TRUE(check());
}

tree::StoreCore small_store() {
  return {*memory::Region::reserve({.bytes_max = std::uint64_t{16} << 20, .huge_pages = false}), 8};
}

bool a_dropped_region_has_no_key() {
  tree::StoreCore store = small_store();
  const auto table = *fabric::RegionTable::create(7);
  const auto made = *create_region(store.catalog, "r", 64);
  const auto key = *made->offer(*table, fabric::RemoteRights::write, 1);
  static_cast<void>(store.catalog.drop("r"));
  fabric::RegionTable::Reader reader(*table);
  reader.enter();
  const bool found = reader.find(key.remote().key, key.remote().base, 8,
                                 fabric::RemoteRights::write, 1) != nullptr;
  reader.leave();
  return !found;
}

bool a_dropped_region_is_not_written() {
  tree::StoreCore store = small_store();
  const auto made = *create_region(store.catalog, "r", 64);
  static_cast<void>(store.catalog.drop("r"));
  return !made->fetch_add(0, 1);
}

bool regions_take_of_the_limit() {
  tree::StoreCore store = small_store();
  const std::uint64_t left = store.region.limit_bytes() - store.region.taken_bytes();
  const auto made = create_region(store.catalog, "r", left);
  return made && !create_region(store.catalog, "s", 1);
}

TEST(RegionPlanted, AKeyThatOutlivesItsRegionIsNoticed) {
  expect_noticed(Bug::keys_kept, a_dropped_region_has_no_key);
}
TEST(RegionPlanted, AWriteToADroppedRegionIsNoticed) {
  expect_noticed(Bug::gate_open, a_dropped_region_is_not_written);
}
TEST(RegionPlanted, ARegionBeyondTheLimitIsNoticed) {
  expect_noticed(Bug::not_counted, regions_take_of_the_limit);
}

}  // namespace
}  // namespace espalier::region
