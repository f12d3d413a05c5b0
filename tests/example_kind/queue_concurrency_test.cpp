// SPDX-License-Identifier: Apache-2.0
// Queues of which many threads push and pop.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/example_kind/queue_fixture.hpp"

namespace espalier::example {
namespace {

class QueueConcurrency : public QueueOverEachWay {};

// Each entry comes once, and those of one thread in its order.
TEST_P(QueueConcurrency, ManyThreadsShareOne) {
  constexpr std::uint64_t kEach = 300;
  constexpr int kThreads = 2;
  ASSERT_TRUE(QueueHandle::create(*store_, "jobs"));
  std::atomic<std::uint64_t> left{kEach * kThreads};
  std::vector<std::vector<Queue::Entry>> taken(kThreads);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      const auto queue = QueueHandle::open(*store_, "jobs");
      for (std::uint64_t i = 0; i < kEach; ++i) {
        EXPECT_TRUE(queue->push(std::to_string(thread) + " " + std::to_string(i)));
      }
    });
    threads.emplace_back([&, thread] {
      const auto queue = QueueHandle::open(*store_, "jobs");
      while (left.load() != 0) {
        auto entry = queue->pop();
        ASSERT_TRUE(entry) << message(entry.error());
        if (!*entry) continue;
        taken[thread].push_back(*std::move(*entry));
        --left;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::map<std::uint64_t, std::string> all;
  for (const auto& part : taken) {
    for (std::size_t i = 0; i < part.size(); ++i) {
      EXPECT_TRUE(i == 0 || part[i - 1].number < part[i].number);
      EXPECT_TRUE(all.emplace(part[i].number, part[i].bytes).second) << "twice";
    }
  }
  ASSERT_EQ(all.size(), kEach * kThreads);
  std::vector<std::uint64_t> next(kThreads);
  for (const auto& [number, bytes] : all) {
    const int thread = bytes.front() - '0';
    EXPECT_EQ(bytes, std::to_string(thread) + " " + std::to_string(next[thread]++));
  }
  EXPECT_EQ(audit("jobs"), std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(Ways, QueueConcurrency, ::testing::Values("embedded", "shm"),
                         test::way_name);

}  // namespace
}  // namespace espalier::example
