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

OneSidedOptions harsh() {
  OneSidedOptions options;
  options.faults = fabric::sim::Faults::harsh();
  return options;
}

TEST(OneSidedRules, ANodeAnswersForItsVersionsOnly) {
  expect_rejected(tree::Bug::ignore_created, [] { return any_seed(calm(), 10); });
  expect_rejected(tree::Bug::ignore_superseded, [] { return any_seed(calm(), 10); });
}

TEST(OneSidedRules, ANodeAnswersForItsKeysOnly) {
  expect_rejected(tree::Bug::skip_range_check, [] { return any_seed(harsh(), 20); });
}

TEST(OneSidedRules, TheReadVersionIsReadForEachWalk) {
  expect_rejected(tree::Bug::stale_read_version, [] { return any_seed(calm(), 5); });
}

TEST(OneSidedRules, ALogIsFilledBeforehand) {
  expect_rejected(tree::Bug::log_not_prefilled, [] { return any_seed(harsh(), 40); });
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

// Behind a host that ends leases without fencing their readers, what was read is all that protects
// them: each buffer is confirmed after its last byte.
TEST(OneSidedRules, WhatWasReadIsConfirmed) {
  OneSidedOptions options = harsh();
  options.fences = false;
  expect_rejected(tree::Bug::generation_not_confirmed, [&] { return any_seed(options, 60); });
}

}  // namespace
}  // namespace espalier::test
