// SPDX-License-Identifier: Apache-2.0
// The checks of dropped maps notice a store that frees them too early.
#include <gtest/gtest.h>

#include "kinds/map/testing/dropped_maps_checks.hpp"
#include "memory/planted_memory_bugs.hpp"

namespace espalier::tree {
namespace {

TEST(DroppedMapsPlanted, FreeingAtOnceIsNoticed) {
  {
    const base::Planted planted(memory::Bug::dropped_freed_at_once);
    EXPECT_FALSE(waits_for_a_lease());
  }
  EXPECT_TRUE(waits_for_a_lease());
}

}  // namespace
}  // namespace espalier::tree
