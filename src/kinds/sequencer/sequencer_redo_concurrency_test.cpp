// SPDX-License-Identifier: Apache-2.0
// Threads that take numbers by asking while others add and one begins epochs: the records come in
// the order of epochs and numbers, and each number that was taken by asking is below that of a
// record.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "catalog/testing/recording_sink.hpp"
#include "kinds/sequencer/redo_record.hpp"
#include "kinds/sequencer/sequencer.hpp"

namespace espalier::sequencer {
namespace {

// Of each epoch so many that records stay few, however late the next one begins.
void take_until(const std::atomic<bool>& done, Sequencer& numbers) {
  constexpr int kTakesOfAnEpoch = 1000;
  std::uint32_t epoch = 0;
  for (int takes = 0; !done.load();) {
    const std::uint32_t now = numbers.facts().epoch;
    if (std::exchange(epoch, now) != now) takes = 0;
    if (takes == kTakesOfAnEpoch) {
      std::this_thread::yield();
      continue;
    }
    ++takes;
    static_cast<void>(numbers.take(wire::kAnyEpoch, 3));
  }
}

TEST(SequencerRedoConcurrency, RecordsComeInTheOrderOfNumbers) {
  catalog::RecordingSink sink;
  Sequencer numbers(1, "n", 0);
  numbers.record_to(&sink);
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] { take_until(done, numbers); });
  }
  threads.emplace_back([&] {
    while (!done.load()) {
      const auto window = numbers.window();
      for (int i = 0; window && i < 20; ++i) window->page->word().fetch_add(5);
    }
  });
  for (std::uint32_t epoch = 1; epoch < 10; ++epoch) {
    while (numbers.facts().next - numbers.facts().first < 40) std::this_thread::yield();
    EXPECT_TRUE(numbers.advance(epoch, 0));
  }
  done = true;
  for (std::thread& thread : threads) thread.join();

  std::pair<std::uint32_t, std::uint64_t> before{1, 0};
  Sequencer other(1, "n", 0);
  for (const std::string_view record : sink.records()) {
    const auto redo = read_sequencer_redo(record);
    ASSERT_TRUE(redo);
    const std::pair now{redo->epoch, redo->next};
    ASSERT_LE(before, now);
    const bool reserves = redo->head.type == static_cast<std::uint8_t>(RedoType::reserved);
    if (!reserves) before = now;  // later takers may use reserved numbers
    ASSERT_TRUE(other.apply_redo(record));
  }
  EXPECT_EQ(sink.rooms(), 0u);
  EXPECT_EQ(other.facts().epoch, numbers.facts().epoch);
  EXPECT_EQ(other.facts().first, numbers.facts().first);
  EXPECT_LE(other.facts().next, numbers.facts().next);  // what others added is in no record
}

}  // namespace
}  // namespace espalier::sequencer
