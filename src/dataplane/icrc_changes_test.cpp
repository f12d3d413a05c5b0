// SPDX-License-Identifier: Apache-2.0
#include "dataplane/icrc_changes.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "fabric/roce/icrc.hpp"

namespace espalier::dataplane {
namespace {

TEST(IcrcChanges, AreTheSameInAllForms) {
  base::Random random(base::seed_from_environment(4546));
  for (int round = 0; round < 2000; ++round) {
    const std::size_t count = random.below(kIcrcsTogether + 1);
    IcrcChanges changes{};
    for (std::size_t i = 0; i < count; ++i) {
      // Of one bit now and then, and of the low bytes alone, as of addresses near each other.
      const std::uint64_t drawn = random();
      changes.addresses[i] = round % 3 == 0   ? std::uint64_t{1} << (drawn % 64)
                             : round % 3 == 1 ? drawn & 0xFF'FFFF
                                              : drawn;
    }
    IcrcChanges by_table = changes;
    find_icrc_changes(changes, count);
    find_icrc_changes_by_table(by_table, count);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(changes.icrcs[i], fabric::roce::icrc_change(changes.addresses[i], 0));
      ASSERT_EQ(changes.icrcs[i], by_table.icrcs[i]);
    }
  }
}

}  // namespace
}  // namespace espalier::dataplane
