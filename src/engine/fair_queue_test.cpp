// SPDX-License-Identifier: Apache-2.0
// The policy alone, on a virtual clock; random mixes of flows are in fair_queue_random_test.cpp.
#include "engine/fair_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

namespace espalier::offload {
namespace {

constexpr std::uint64_t kQuantum = 200;

/// A flow with items that always have more to do.
struct Greedy {
  explicit Greedy(FairQueue& queue, int count = 1) {
    for (int i = 0; i < count; ++i) queue.push(items.emplace_back(flow));
  }
  FairQueue::Flow flow;
  std::deque<FairQueue::Item> items;
};

/// Serves one step of the next item; returns its flow.
FairQueue::Flow* serve(FairQueue& queue, std::uint64_t took_ns, bool again = true) {
  FairQueue::Item* const item = queue.pop();
  if (item == nullptr) return nullptr;
  queue.charge(*item, took_ns, again);
  return &item->flow();
}

/// Serves steps until one is of another flow; returns the time that this one got before.
std::uint64_t serve_before_another(FairQueue& queue, const FairQueue::Flow& flow,
                                   std::uint64_t step_ns) {
  for (std::uint64_t served = 0;; served += step_ns) {
    if (serve(queue, step_ns) != &flow) return served;
  }
}

TEST(FairQueue, NothingIsReadyInAnEmptyOne) {
  FairQueue queue(kQuantum);
  EXPECT_EQ(queue.pop(), nullptr);
  FairQueue::Flow flow;
  FairQueue::Item item(flow);
  queue.push(item);
  EXPECT_TRUE(item.ready());
  EXPECT_EQ(queue.pop(), &item);
  EXPECT_FALSE(item.ready());
  EXPECT_EQ(queue.pop(), nullptr);
  EXPECT_EQ(queue.running(), 1u);
  queue.charge(item, 70, false);
  EXPECT_EQ(queue.running(), 0u);
  EXPECT_EQ(flow.served_ns(), 70u);
  EXPECT_EQ(queue.pop(), nullptr);
}

TEST(FairQueue, ItemsOfAFlowTakeTurns) {
  FairQueue queue(kQuantum);
  Greedy flow(queue, 3);
  for (int round = 0; round < 4; ++round) {
    for (FairQueue::Item& item : flow.items) {
      ASSERT_EQ(queue.pop(), &item);
      queue.charge(item, 90, true);
    }
  }
}

TEST(FairQueue, AFlowWithManyItemsGetsNoMoreThanOneWithASingle) {
  FairQueue queue(kQuantum);
  Greedy many(queue, 100);
  Greedy single(queue);
  for (int i = 0; i < 1000; ++i) serve(queue, 50);
  EXPECT_NEAR(static_cast<double>(many.flow.served_ns()), 25'000, kQuantum);
  EXPECT_NEAR(static_cast<double>(single.flow.served_ns()), 25'000, kQuantum);
}

TEST(FairQueue, StepsThatTakeLongerArePaidBack) {
  FairQueue queue(kQuantum);
  Greedy heavy(queue, 4);
  Greedy light(queue);
  ASSERT_EQ(serve(queue, 10 * kQuantum), &heavy.flow);
  EXPECT_EQ(heavy.flow.deficit_ns(), -9 * std::int64_t{kQuantum});
  // Nine rounds pay the debt, and the tenth gives credit; the light flow has all of them.
  EXPECT_EQ(serve_before_another(queue, light.flow, kQuantum), 10 * kQuantum);
}

TEST(FairQueue, ADebtOfHoursCostsNoTimeToPassOver) {
  FairQueue queue(1);
  Greedy heavy(queue, 2);
  constexpr std::uint64_t kHour = 3'600'000'000'000;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(serve(queue, kHour), &heavy.flow);
  Greedy light(queue);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(serve(queue, kHour / 1000), &light.flow);
  for (std::uint64_t length : {~std::uint64_t{0}, ~std::uint64_t{0}, kHour}) {
    ASSERT_NE(serve(queue, length), nullptr);  // no sum overflows
  }
}

TEST(FairQueue, AnIdleFlowSavesNoMoreThanAQuantum) {
  FairQueue queue(kQuantum);
  Greedy busy(queue);
  FairQueue::Flow idle;
  FairQueue::Item one(idle);
  FairQueue::Item two(idle);
  queue.push(one);
  for (int i = 0; i < 3; ++i) serve(queue, 10, false);  // `one` ends, in whatever order
  if (!busy.items.front().ready()) queue.push(busy.items.front());
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(serve(queue, kQuantum), &busy.flow);
  queue.push(one);
  queue.push(two);
  while (serve(queue, kQuantum) != &idle) {
  }
  EXPECT_LE(serve_before_another(queue, idle, 10), kQuantum);
}

TEST(FairQueue, AFlowThatComesBackInTheSameRoundGetsNoSecondQuantum) {
  FairQueue queue(kQuantum);
  Greedy busy(queue, 2);
  FairQueue::Flow toggling;
  FairQueue::Item item(toggling);
  std::uint64_t most_ahead = 0;
  for (int i = 0; i < 10'000; ++i) {
    if (!item.ready()) queue.push(item);
    FairQueue::Item* const next = queue.pop();
    queue.charge(*next, 150, next != &item);
    if (toggling.served_ns() > busy.flow.served_ns()) {
      most_ahead = std::max(most_ahead, toggling.served_ns() - busy.flow.served_ns());
    }
  }
  EXPECT_LE(most_ahead, 2 * (kQuantum + 150));
  EXPECT_NEAR(static_cast<double>(toggling.served_ns()), 750'000, 2 * (kQuantum + 150));
}

TEST(FairQueue, GoingIdleIsNoWayOutOfADebtWhileOthersAreBusy) {
  FairQueue queue(kQuantum);
  Greedy busy(queue);
  FairQueue::Flow flow;
  FairQueue::Item item(flow);
  queue.push(item);
  FairQueue::Item* next = queue.pop();
  while (next != &item) {
    queue.charge(*next, kQuantum, true);
    next = queue.pop();
  }
  queue.charge(item, 100 * kQuantum, false);
  for (int i = 0; i < 40; ++i) ASSERT_EQ(serve(queue, kQuantum), &busy.flow);
  queue.push(item);  // 40 of 99 quanta are forgiven by now
  const std::uint64_t waited = serve_before_another(queue, busy.flow, kQuantum);
  EXPECT_GE(waited, 58 * kQuantum);
  EXPECT_LE(waited, 61 * kQuantum);
}

TEST(FairQueue, ADebtIsForgivenWhenNothingIsReadyOrRunning) {
  FairQueue queue(kQuantum);
  FairQueue::Flow flow;
  FairQueue::Item item(flow);
  queue.push(item);
  serve(queue, 1000 * kQuantum, false);
  queue.push(item);
  Greedy other(queue);
  EXPECT_EQ(serve(queue, kQuantum), &flow);
}

TEST(FairQueue, TimeOutsideOfStepsCountsToo) {
  FairQueue queue(kQuantum);
  Greedy ending(queue);
  Greedy other(queue);
  queue.charge(ending.flow, 5 * kQuantum);
  EXPECT_EQ(ending.flow.served_ns(), 5 * kQuantum);
  EXPECT_GE(serve_before_another(queue, other.flow, kQuantum), 4 * kQuantum);
}

TEST(FairQueue, AnErasedItemIsNotServed) {
  FairQueue queue(kQuantum);
  Greedy flow(queue, 3);
  Greedy other(queue);
  queue.erase(flow.items[1]);
  EXPECT_FALSE(flow.items[1].ready());
  for (int i = 0; i < 20; ++i) {
    FairQueue::Item* const item = queue.pop();
    EXPECT_NE(item, &flow.items[1]);
    queue.charge(*item, kQuantum, true);
  }
  queue.erase(flow.items[0]);
  queue.erase(flow.items[2]);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(serve(queue, kQuantum), &other.flow);
  queue.erase(other.items[0]);
  EXPECT_EQ(queue.pop(), nullptr);
}

// With several servers the only item of a flow is running most of the time; each time it comes
// back its flow goes on with its turn, so that it has a server for itself.
TEST(FairQueue, ASingleItemBesideManyHasAServerForItself) {
  FairQueue queue(kQuantum);
  Greedy single(queue);
  Greedy many(queue, 20);
  std::vector<FairQueue::Item*> servers(4, nullptr);
  for (int step = 0; step < 1000; ++step) {
    for (FairQueue::Item*& server : servers) {
      if (server != nullptr) queue.charge(*server, kQuantum / 2, true);
      server = queue.pop();
    }
  }
  const double whole = 1000 * kQuantum / 2.0;
  EXPECT_GE(static_cast<double>(single.flow.served_ns()), 0.75 * whole);
  EXPECT_NEAR(static_cast<double>(single.flow.served_ns() + many.flow.served_ns()), 4 * whole,
              4 * kQuantum);
}

/// Flows of one group, each with items that always have more to do.
struct GreedyGroup {
  GreedyGroup(FairQueue& queue, int flows, int items_of_each) {
    for (int i = 0; i < flows; ++i) {
      FairQueue::Flow& flow = of.emplace_back(group);
      for (int j = 0; j < items_of_each; ++j) queue.push(items.emplace_back(flow));
    }
  }
  FairQueue::Group group;
  std::deque<FairQueue::Flow> of;
  std::deque<FairQueue::Item> items;
};

TEST(FairQueue, AGroupsShareDoesNotDependOnItsFlows) {
  FairQueue queue(kQuantum);
  GreedyGroup many(queue, 40, 5);
  GreedyGroup few(queue, 1, 1);
  GreedyGroup slow(queue, 10, 3);
  for (int i = 0; i < 20'000; ++i) {
    FairQueue::Item* const item = queue.pop();
    queue.charge(*item, &item->flow().group() == &slow.group ? 900 : 70, true);
  }
  const std::uint64_t served = few.group.served_ns();
  for (const GreedyGroup* const group : {&many, &slow}) {
    EXPECT_NEAR(static_cast<double>(group->group.served_ns()), static_cast<double>(served),
                2 * (kQuantum + 900.0));
    for (const FairQueue::Flow& flow : group->of) {
      EXPECT_NEAR(static_cast<double>(flow.served_ns()),
                  static_cast<double>(served) / static_cast<double>(group->of.size()),
                  2 * (kQuantum + 900.0));
    }
  }
}

TEST(FairQueue, AGroupWhoseFlowsAreIdleStandsInNoRound) {
  FairQueue queue(kQuantum);
  GreedyGroup group(queue, 2, 1);
  FairQueue::Item* const first = queue.pop();
  queue.charge(*first, 10, false);
  for (FairQueue::Item& item : group.items) {
    if (item.ready()) queue.erase(item);
  }
  EXPECT_FALSE(queue.has_ready());
  EXPECT_EQ(queue.pop(), nullptr);
  queue.push(*first);
  EXPECT_EQ(queue.pop(), first);
  queue.charge(*first, 10, false);
  EXPECT_EQ(group.group.served_ns(), 20u);
}

}  // namespace
}  // namespace espalier::offload
