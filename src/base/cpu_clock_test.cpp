// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_clock.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace espalier::base {
namespace {

TEST(CpuClock, GoesOnWhileTheThreadWorks) {
  const std::uint64_t begin = thread_cpu_ns();
  std::uint64_t now = begin;
  while (now < begin + 100'000) {
    const std::uint64_t next = thread_cpu_ns();
    ASSERT_GE(next, now);
    now = next;
  }
}

// The work of another is not in it, though this one waits until it is done.
TEST(CpuClock, StandsStillWhileTheThreadWaits) {
  const std::uint64_t begin = thread_cpu_ns();
  std::uint64_t of_other = 0;
  std::thread other([&] {
    while (of_other < 20'000'000) of_other = thread_cpu_ns();
  });
  other.join();
  EXPECT_LT(thread_cpu_ns() - begin, of_other);
}

}  // namespace
}  // namespace espalier::base
