// SPDX-License-Identifier: Apache-2.0
// What must hold of a version clock, as checks that tests run on a good one and on a broken one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "memory/version_clock.hpp"

namespace espalier::memory {

/// A clock over words of its own.
class ClockUnderTest {
 public:
  explicit ClockUnderTest(bool versions = true) {
    clock.attach({.read = reinterpret_cast<std::byte*>(&words_[0]),
                  .write = reinterpret_cast<std::byte*>(&words_[1])},
                 versions);
  }
  /// A version that is taken and done: released, unless an earlier one is not done or a hold
  /// stands.
  std::uint64_t write() {
    const std::uint64_t version = clock.take();
    clock.done(version);
    return version;
  }

  VersionClock clock;

 private:
  std::uint64_t words_[2]{};
};

/// Finishes three versions out of order; whether none was released before those below it.
inline bool releases_wait_for_earlier_versions() {
  ClockUnderTest under;
  VersionClock& clock = under.clock;
  const std::uint64_t first = clock.take();
  const std::uint64_t second = clock.take();
  const std::uint64_t third = clock.take();
  clock.done(third);
  bool good = clock.released() < first;
  clock.done(first);
  good = good && clock.released() == first;
  clock.done(second);
  return good && clock.released() == third;
}

/// Writers take and finish versions while an observer looks: whether every released version was
/// complete, and everything is released in the end.
inline bool released_versions_are_complete(int writers, std::uint64_t versions_each) {
  ClockUnderTest under;
  VersionClock& clock = under.clock;
  const std::uint64_t total = static_cast<std::uint64_t>(writers) * versions_each;
  std::vector<std::atomic<bool>> complete(total + 1);
  std::atomic<bool> good{true};
  std::vector<std::thread> threads;
  for (int w = 0; w < writers; ++w) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < versions_each; ++i) {
        clock.admit();
        const std::uint64_t version = clock.take();
        if (version % 3 == 0) std::this_thread::yield();  // let later versions finish first
        complete[version].store(true, std::memory_order_relaxed);
        clock.done(version);
      }
    });
  }
  threads.emplace_back([&] {
    std::uint64_t seen = 0;
    while (seen < total) {
      const std::uint64_t released = clock.released();
      if (released < seen) good = false;
      for (; seen < released; ++seen) {
        if (!complete[seen + 1].load(std::memory_order_relaxed)) good = false;
      }
      if (!good) break;
      std::this_thread::yield();
    }
  });
  for (std::thread& thread : threads) thread.join();
  return good && clock.released() == total;
}

}  // namespace espalier::memory
