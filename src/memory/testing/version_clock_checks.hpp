// SPDX-License-Identifier: Apache-2.0
// What must hold of a version clock, as checks that tests run on a good one and on a broken one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/durable_mark.hpp"
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

/// Writes whose records become durable by hand, in another order than their versions; whether none
/// was released before its record and those of all earlier versions.
inline bool releases_wait_for_records() {
  base::DurableMark mark(10);
  ClockUnderTest under;
  VersionClock& clock = under.clock;
  clock.wait_for_records(&mark);
  const std::uint64_t first = clock.take();
  const std::uint64_t second = clock.take();
  const std::uint64_t third = clock.take();
  clock.done(second, 11);
  clock.done(first, 12);
  bool good = clock.released() < first;
  mark.rise(11);
  good = good && clock.released() < first;
  mark.rise(12);
  good = good && clock.released() == second;
  clock.done(third, 13);
  good = good && clock.released() == second;
  mark.rise(15);
  good = good && clock.released() == third;
  const std::uint64_t fourth = clock.take();
  clock.done(fourth, 14);  // durable before it is done
  return good && clock.released() == fourth;
}

/// Writers take and finish versions, with records, while a thread raises the mark behind them, and
/// an observer looks: whether every released version had a durable record, and everything is
/// released in the end, though no thread writes any more.
inline bool released_versions_are_durable(int writers, std::uint64_t versions_each) {
  base::DurableMark mark(0);
  ClockUnderTest under;
  VersionClock& clock = under.clock;
  clock.wait_for_records(&mark);
  const std::uint64_t total = static_cast<std::uint64_t>(writers) * versions_each;
  std::vector<std::atomic<std::uint64_t>> sequences(total + 1);
  std::atomic<std::uint64_t> handed_over{0};
  std::atomic<bool> good{true};
  std::vector<std::thread> threads;
  for (int w = 0; w < writers; ++w) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < versions_each; ++i) {
        clock.admit();
        const std::uint64_t version = clock.take();
        if (version % 3 == 0) std::this_thread::yield();
        const std::uint64_t sequence = handed_over.fetch_add(1) + 1;
        sequences[version].store(sequence);
        clock.done(version, sequence);
      }
    });
  }
  threads.emplace_back([&] {
    while (mark.durable() < total) {
      const std::uint64_t now = handed_over.load();
      if (now > mark.durable()) mark.rise(now);
      std::this_thread::yield();
    }
  });
  threads.emplace_back([&] {
    std::uint64_t seen = 0;
    while (mark.released() < total) {
      const std::uint64_t released = clock.released();
      const std::uint64_t durable = mark.durable();
      for (; seen < released; ++seen) {
        if (sequences[seen + 1].load() == 0 || sequences[seen + 1].load() > durable) good = false;
      }
      std::this_thread::yield();
    }
  });
  for (std::thread& thread : threads) thread.join();
  return good && clock.released() == total;
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
