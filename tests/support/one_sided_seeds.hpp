// SPDX-License-Identifier: Apache-2.0
// Runs the world of one_sided_world.hpp with one seed after the other.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>

#include "base/testing/seeds.hpp"
#include "tests/support/one_sided_world.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {

/// A number that is printed at the end.
struct SeedReport {
  const char* what;
  std::uint64_t OneSidedCounts::* count;
};

/// Nothing is wrong in any of so many seeds, or of as many as the environment says.
inline void run_one_sided_seeds(const OneSidedOptions& options, std::uint64_t usually,
                                OneSidedCounts& counts, std::span<const SeedReport> reports) {
  const std::uint64_t first = seed_from_environment(1);
  base::Seeds seeds(scaled(usually));
  for (std::uint64_t i = 0; i < seeds.count(); ++i) {
    SCOPED_TRACE(seed_text(first + i));
    ASSERT_EQ(run_one_sided(first + i, options, counts), "");
    seeds.done();
  }
  for (const SeedReport& report : reports) seeds.report(report.what, counts.*report.count);
}

/// Whether so many are run that what happens seldom must have happened.
inline bool are_enough(std::uint64_t usually) {
  return base::Seeds(scaled(usually)).count() >= usually;
}

}  // namespace espalier::test
