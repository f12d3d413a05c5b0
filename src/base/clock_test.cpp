// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"

#include <gtest/gtest.h>

namespace espalier::base {
namespace {

TEST(Clock, NeitherGoesBack) {
  std::uint64_t monotonic = monotonic_ns();
  std::uint64_t boot = boot_ns();
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t monotonic_next = monotonic_ns();
    const std::uint64_t boot_next = boot_ns();
    ASSERT_GE(monotonic_next, monotonic);
    ASSERT_GE(boot_next, boot);
    monotonic = monotonic_next;
    boot = boot_next;
  }
}

// Both start together, and only the one for leases counts sleep.
TEST(Clock, BootTimeIsNeverBehind) {
  const std::uint64_t monotonic = monotonic_ns();
  EXPECT_GE(boot_ns(), monotonic);
}

TEST(Clock, StopwatchStartsAgain) {
  Stopwatch watch;
  const std::uint64_t before = monotonic_ns();
  while (monotonic_ns() == before) {
  }
  EXPECT_GT(watch.elapsed_ns(), 0u);
  const std::uint64_t longer = watch.elapsed_ns() + (monotonic_ns() - before);
  watch.restart();
  EXPECT_LE(watch.elapsed_ns(), longer + (monotonic_ns() - before));
}

}  // namespace
}  // namespace espalier::base
