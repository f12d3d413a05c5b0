// SPDX-License-Identifier: Apache-2.0
#include "base/barrier.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "base/testing/litmus.hpp"

namespace espalier::base {
namespace {

constexpr std::uint64_t kLitmusRounds = kThreadSanitizer ? 5000 : 20'000;

// Two threads store to one word each and then load the other's. Without barriers both may load the
// old value, because the stores wait in store buffers (measured: 1 in 100 rounds on two free cores,
// 1 in 500 with a barrier on one side only); with them one sees the other's.
// Returns in how many rounds both missed.
template <class First, class Second>
int both_missed(First first_barrier, Second second_barrier) {
  alignas(64) std::atomic<int> x{0};
  alignas(64) std::atomic<int> y{0};
  alignas(64) int saw_y = 0;
  alignas(64) int saw_x = 0;
  int missed = 0;
  Litmus().run(
      kLitmusRounds,
      [&] {
        x.store(1, std::memory_order_relaxed);
        first_barrier();
        saw_y = y.load(std::memory_order_relaxed);
      },
      [&] {
        y.store(1, std::memory_order_relaxed);
        second_barrier();
        saw_x = x.load(std::memory_order_relaxed);
      },
      [&] {
        if (saw_x == 0 && saw_y == 0) ++missed;
        x.store(0, std::memory_order_relaxed);
        y.store(0, std::memory_order_relaxed);
      });
  return missed;
}

TEST(BarrierConcurrency, FullFencesOrderStoresBeforeLoads) {
  EXPECT_EQ(both_missed(full_fence, full_fence), 0);
}

TEST(BarrierConcurrency, LightAndHeavyBarrierDoAsTwoFullOnes) {
  // ThreadSanitizer cannot see them, so there are none under it; tests/skips.txt lists this.
  if (!register_asymmetric_barriers()) GTEST_SKIP() << "no asymmetric barriers here";
  EXPECT_EQ(both_missed(light_barrier, heavy_barrier), 0);
}

TEST(Barrier, RegisteringAgainIsAllowed) {
  const bool first = register_asymmetric_barriers();
  EXPECT_EQ(register_asymmetric_barriers(), first);
  if (first) heavy_barrier();
}

}  // namespace
}  // namespace espalier::base
