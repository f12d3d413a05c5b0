// SPDX-License-Identifier: Apache-2.0
// The check of readers of tables notices one that does not look, after the last byte, whether the
// page is still that page and the table still that table.
#include <gtest/gtest.h>

#include "kinds/table/planted_table_bugs.hpp"
#include "kinds/table/remote/testing/table_world.hpp"

namespace espalier::place {
namespace {

/// What the first of some seeds finds wrong; empty: none does.
std::string first_wrong() {
  fabric::sim::Faults faults;
  faults.reads_in_order = true;
  TableWorldCounts counts;
  for (std::uint64_t seed = 100; seed < 200; ++seed) {
    const std::string wrong = wrong_with_reading(seed, faults, counts);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

TEST(TableReaderPlanted, ARowOfMemoryThatIsNoLongerTheTablesIsNoticed) {
  ASSERT_EQ(first_wrong(), "");
  {
    const base::Planted planted(table::Bug::read_not_confirmed);
    EXPECT_NE(first_wrong(), "");
  }
  EXPECT_EQ(first_wrong(), "");
}

}  // namespace
}  // namespace espalier::place
