// SPDX-License-Identifier: Apache-2.0
// Threads that take numbers by the object and by adding to its page, while others seal and begin
// epochs: no number comes twice, and none is taken of an epoch after its seal was reported.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "kinds/sequencer/sequencer.hpp"

namespace espalier::sequencer {
namespace {

constexpr std::uint32_t kEpochs = 12;
constexpr int kTakers = 2;

/// What one thread took, and how many seals it knew of before it began to take each.
struct Taken {
  Range range;
  std::uint32_t ended = 0;  // all epochs up to this one
};

class SequencerConcurrency : public testing::Test {
 protected:
  void take_by_asking(std::vector<Taken>& into) {
    while (!done_.load()) {
      const std::uint32_t ended = ended_.load();
      const auto taken = numbers_.take(wire::kAnyEpoch, 3);
      if (taken) into.push_back({*taken, ended});
    }
  }
  void take_by_adding(std::vector<Taken>& into) {
    while (!done_.load()) {
      const auto window = numbers_.window();
      if (!window) continue;
      for (int i = 0; i < 50; ++i) {
        const std::uint32_t ended = ended_.load();
        const auto taken = check_answer(window->page->word().fetch_add(5), window->epoch, 5);
        if (!taken) break;
        into.push_back({*taken, ended});
      }
    }
  }
  void begin_epochs(std::uint32_t each_after) {
    for (std::uint32_t epoch = 1; epoch < kEpochs; ++epoch) {
      while (numbers_.facts().next - numbers_.facts().first < each_after) std::this_thread::yield();
      ASSERT_TRUE(numbers_.seal(epoch).has_value());
      ended_ = epoch;
      ASSERT_TRUE(numbers_.advance(epoch, 0).has_value());
    }
    done_ = true;
  }

  Sequencer numbers_{1, "n", 0};
  std::atomic<std::uint32_t> ended_{0};
  std::atomic<bool> done_{false};
};

TEST_F(SequencerConcurrency, NoNumberComesTwiceAndNoneAfterASeal) {
  std::vector<std::vector<Taken>> all(2 * kTakers);
  std::vector<std::thread> threads;
  for (int i = 0; i < kTakers; ++i) {
    threads.emplace_back([&, i] { take_by_asking(all[2 * i]); });
    threads.emplace_back([&, i] { take_by_adding(all[2 * i + 1]); });
  }
  begin_epochs(40);
  for (std::thread& thread : threads) thread.join();
  std::vector<Range> ranges;
  for (const auto& of_thread : all) {
    for (const Taken& taken : of_thread) {
      ASSERT_GT(taken.range.epoch, taken.ended);
      ranges.push_back(taken.range);
    }
  }
  ASSERT_FALSE(ranges.empty());
  std::ranges::sort(ranges, {}, &Range::first);
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    ASSERT_LE(ranges[i - 1].end(), ranges[i].first);
    ASSERT_LE(ranges[i - 1].epoch, ranges[i].epoch);
  }
  EXPECT_EQ(numbers_.facts().flags & wire::kSequencerOverwritten, 0u);
}

// A client puts the word back, to what it was a moment before or a little further; whatever it
// does, asking brings no number twice.
TEST_F(SequencerConcurrency, WhoWritesOverTheWordMakesNoNumberComeTwice) {
  std::vector<std::vector<Taken>> all(kTakers);
  std::vector<std::thread> threads;
  for (int i = 0; i < kTakers; ++i) threads.emplace_back([&, i] { take_by_asking(all[i]); });
  threads.emplace_back([&] {
    while (!done_.load()) {
      const auto window = numbers_.window();
      if (!window) continue;
      const std::uint64_t first = window->page->word().load();
      for (std::uint64_t i = 0; i < 20; ++i) {
        const std::uint64_t seen = window->page->word().load();
        if (i % 4 == 0) std::this_thread::yield();  // so that others move it meanwhile
        window->page->word().store(std::max(first, seen - i % 3));
      }
    }
  });
  for (std::uint32_t epoch = 1; epoch < kEpochs; ++epoch) {
    wire::SequencerFacts now = numbers_.facts();
    // Corruption is detected soon; otherwise stop after 20'000 numbers.
    for (; now.flags == 0 && now.next < now.first + 20'000; now = numbers_.facts()) {
      std::this_thread::yield();
    }
    std::uint64_t next = std::max(now.next, std::uint64_t{1});
    // It may be written over between the two, and then the number must be named.
    while (!numbers_.advance(epoch, next)) next = std::max(numbers_.facts().next, next);
  }
  done_ = true;
  for (std::thread& thread : threads) thread.join();
  std::vector<Range> ranges;
  for (const auto& of_thread : all) {
    for (const Taken& taken : of_thread) ranges.push_back(taken.range);
  }
  ASSERT_FALSE(ranges.empty());
  std::ranges::sort(ranges, {}, &Range::first);
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    ASSERT_LE(ranges[i - 1].end(), ranges[i].first);
  }
}

}  // namespace
}  // namespace espalier::sequencer
