// SPDX-License-Identifier: Apache-2.0
// Runs the world of one_sided_world.hpp with a range of seeds.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <span>

#include "base/testing/seeds.hpp"
#include "tests/support/one_sided_world.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {

/// A count that is printed at the end.
struct SeedReport {
  const char* what;
  std::uint64_t OneSidedCounts::* count;
};

/// Whether the rare events have happened.
using SeldomHappened = std::function<bool(const OneSidedCounts&)>;

/// Runs so many seeds, or as many as the environment says, and expects no error; runs further ones
/// until the rare events have happened.
inline void run_one_sided_seeds(
    const OneSidedOptions& options, std::uint64_t usually, OneSidedCounts& counts,
    std::span<const SeedReport> reports,
    const SeldomHappened& all_happened = [](const OneSidedCounts&) { return true; }) {
  const std::uint64_t first = seed_from_environment(1);
  base::Seeds seeds(usually, kSanitized ? 10 : 1);
  for (; seeds.more(all_happened(counts)); seeds.done()) {
    const std::uint64_t seed = first + seeds.ended();
    SCOPED_TRACE(seed_text(seed));
    ASSERT_EQ(run_one_sided(seed, options, counts), "");
  }
  for (const SeedReport& report : reports) seeds.report(report.what, counts.*report.count);
}

}  // namespace espalier::test
