// SPDX-License-Identifier: Apache-2.0
// Queues with many pushing and popping threads.
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

constexpr int kThreads = 2;
constexpr int kEach = 300;

class QueueConcurrency : public QueueOverEachWay {};

void push_all(const Store& store, int thread) {
  const auto queue = QueueHandle::open(store, "jobs");
  ASSERT_TRUE(queue);
  for (int i = 0; i < kEach; ++i) {
    EXPECT_TRUE(queue->push(std::to_string(thread) + " " + std::to_string(i)));
  }
}

/// Until there is nothing more, once all is pushed.
std::vector<Queue::Entry> pop_all(const Store& store, const std::atomic<bool>& pushed) {
  std::vector<Queue::Entry> popped;
  const auto queue = QueueHandle::open(store, "jobs");
  while (queue) {
    const bool was_pushed = pushed;
    auto entry = queue->pop();
    if (!entry) ADD_FAILURE() << message(entry.error());
    if (!entry || (!*entry && was_pushed)) break;
    if (*entry) {
      popped.push_back(**std::move(entry));
    } else {
      std::this_thread::yield();
    }
  }
  return popped;
}

// Each entry comes once, and those of one thread in its order.
TEST_P(QueueConcurrency, ManyThreadsShareOne) {
  ASSERT_TRUE(QueueHandle::create(*store_, "jobs"));
  std::atomic<bool> pushed{false};
  std::vector<std::vector<Queue::Entry>> popped(kThreads);
  {
    std::vector<std::jthread> poppers;
    for (auto& part : popped) poppers.emplace_back([&] { part = pop_all(*store_, pushed); });
    {
      std::vector<std::jthread> pushers;
      for (int i = 0; i < kThreads; ++i) pushers.emplace_back([&, i] { push_all(*store_, i); });
    }
    pushed = true;
  }
  std::map<std::uint64_t, std::string> all;
  for (const auto& part : popped) {
    for (std::size_t i = 0; i < part.size(); ++i) {
      EXPECT_TRUE(i == 0 || part[i - 1].number < part[i].number);
      EXPECT_TRUE(all.emplace(part[i].number, std::string_view(part[i].bytes)).second) << "twice";
    }
  }
  ASSERT_EQ(all.size(), kEach * kThreads);
  std::vector<int> next(kThreads);
  for (const auto& [number, bytes] : all) {
    const int thread = bytes.front() - '0';
    EXPECT_EQ(bytes, std::to_string(thread) + " " + std::to_string(next.at(thread)++));
  }
  EXPECT_EQ(audit("jobs"), std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(Ways, QueueConcurrency, ::testing::Values("embedded", "shm"),
                         test::way_name);

}  // namespace
}  // namespace espalier::example
