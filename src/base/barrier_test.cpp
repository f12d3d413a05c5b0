// SPDX-License-Identifier: Apache-2.0
#include "base/barrier.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

namespace espalier::base {
namespace {

// Two threads store to one word each and then load the other's. Without barriers both may load the
// old value, because the stores wait in store buffers; with them at least one sees the other's.
template <class First, class Second>
int both_missed(int rounds, First first_barrier, Second second_barrier) {
  alignas(64) std::atomic<int> x{0};
  alignas(64) std::atomic<int> y{0};
  alignas(64) std::atomic<int> arrived{0};
  int r1 = 0;
  int r2 = 0;
  int missed = 0;
  const auto meet = [&](int target) {
    arrived.fetch_add(1, std::memory_order_acq_rel);
    while (arrived.load(std::memory_order_acquire) < target) std::this_thread::yield();
  };
  std::thread other([&] {
    for (int i = 0; i < rounds; ++i) {
      meet(4 * i + 2);
      y.store(1, std::memory_order_relaxed);
      second_barrier();
      r2 = x.load(std::memory_order_relaxed);
      meet(4 * i + 4);
    }
  });
  for (int i = 0; i < rounds; ++i) {
    // `other` waits at the first meeting of the round: x and y are ours.
    if (i > 0 && r1 == 0 && r2 == 0) ++missed;
    x.store(0, std::memory_order_relaxed);
    y.store(0, std::memory_order_relaxed);
    meet(4 * i + 2);
    x.store(1, std::memory_order_relaxed);
    first_barrier();
    r1 = y.load(std::memory_order_relaxed);
    meet(4 * i + 4);
  }
  other.join();
  return missed + (r1 == 0 && r2 == 0 ? 1 : 0);
}

// Without any barrier about one round in 30000 misses on a machine of two cores.
constexpr int kRounds = kThreadSanitizer ? 5000 : 100'000;

TEST(BarrierConcurrency, FullFencesOrderStoresBeforeLoads) {
  EXPECT_EQ(both_missed(kRounds, full_fence, full_fence), 0);
}

TEST(BarrierConcurrency, LightAndHeavyBarrierDoAsTwoFullOnes) {
  if (!register_asymmetric_barriers()) GTEST_SKIP() << "no asymmetric barriers here";
  EXPECT_EQ(both_missed(kRounds, light_barrier, heavy_barrier), 0);
}

TEST(Barrier, RegisteringAgainIsAllowed) {
  const bool first = register_asymmetric_barriers();
  EXPECT_EQ(register_asymmetric_barriers(), first);
  if (first) heavy_barrier();
}

}  // namespace
}  // namespace espalier::base
