// SPDX-License-Identifier: Apache-2.0
// For tests of memory ordering: two threads do a few instructions each at the same moment, many
// times, so that what a missing barrier would allow does happen.
//
// Both meet before and after each round. One leaves a meeting later than the other by the time that
// a cache line travels; random waits make up for it at times. What it finds it proves; how often it
// finds it depends on two cores being free.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "base/barrier.hpp"
#include "base/random.hpp"

namespace espalier::base {

class Litmus {
 public:
  /// Runs `first` (here) and `second` (on another thread) together, then `check` here alone; all
  /// this so many times.
  template <class First, class Second, class Check>
  void run(std::uint64_t rounds, First first, Second second, Check check) {
    std::thread other([&] { side(rounds, 1, second, [] {}); });
    side(rounds, 2, first, check);
    other.join();
  }

 private:
  static constexpr int kSpins = 200;
  static constexpr std::uint64_t kWaitMax = 64;

  template <class Body, class Check>
  void side(std::uint64_t rounds, std::uint64_t seed, Body body, Check check) {
    Random random(seed);
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const std::uint64_t wait = random() % kWaitMax;
      meet(6 * round + 2);
      for (std::uint64_t i = 0; i < wait; ++i) light_barrier();
      body();
      meet(6 * round + 4);
      check();
      meet(6 * round + 6);
    }
  }

  /// Waits until both are here. Yields after a while: there may be one core only.
  void meet(std::uint64_t target) {
    arrived_.fetch_add(1, std::memory_order_acq_rel);
    for (int spin = 0; arrived_.load(std::memory_order_acquire) < target; ++spin) {
      if (spin > kSpins) std::this_thread::yield();
    }
  }

  alignas(64) std::atomic<std::uint64_t> arrived_{0};
};

}  // namespace espalier::base
