// SPDX-License-Identifier: Apache-2.0
// The rules of the protocol as readers from elsewhere meet them: each is broken once, and the
// simulated world of one_sided_world.hpp must notice.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/support/one_sided_world.hpp"
#include "tests/support/planting.hpp"

namespace espalier::test {
namespace {

// What is wrong in the first seed in which something is.
Wrong any_seed(const OneSidedOptions& options, std::uint64_t seeds) {
  OneSidedCounts counts;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Wrong wrong = run_one_sided(seed, options, counts);
    if (!wrong.empty()) return "seed " + std::to_string(seed) + ": " + wrong;
  }
  return {};
}

OneSidedOptions calm() {
  OneSidedOptions options;
  options.pauses = false;
  return options;
}

TEST(OneSidedRules, ANodeAnswersForVersionsFromItsOwnOn) {
  expect_rejected(tree::Bug::ignore_created, [] { return any_seed(calm(), 5); });
}

TEST(OneSidedRules, TheReadVersionIsReadForEachWalk) {
  expect_rejected(tree::Bug::stale_read_version, [] { return any_seed(calm(), 5); });
}

// Where leases count, nothing that a walk can reach is used again while it goes on: none has to
// begin again.
TEST(OneSidedRules, ALeaseKeepsMemoryFromBeingUsedAgain) {
  expect_rejected(tree::Bug::lease_not_counted, []() -> Wrong {
    OneSidedCounts counts;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const Wrong wrong = run_one_sided(seed, calm(), counts);
      if (!wrong.empty()) return wrong;
    }
    if (counts.restarts == 0) return {};
    return std::to_string(counts.restarts) + " walks met memory that was used again";
  });
}

}  // namespace
}  // namespace espalier::test
