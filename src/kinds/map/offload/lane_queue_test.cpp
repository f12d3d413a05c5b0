// SPDX-License-Identifier: Apache-2.0
// How lanes are shared, in virtual time: each walk takes as long as it costs, on any number of
// workers.
#include "kinds/map/offload/lane_queue.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.hpp"

namespace espalier::offload {
namespace {

constexpr std::uint32_t kLanes = 8;

/// Workers whose clients always have so many walks under way. Queues look at neither requests nor
/// connections, so numbers stand for them.
class Lanes {
 public:
  explicit Lanes(std::size_t workers) {
    for (std::size_t i = 0; i < workers; ++i) {
      workers_.push_back(std::make_unique<LaneQueue>(rounds_, kLanes));
    }
  }

  /// A client of a principal with so many walks in flight, each of such a cost.
  std::size_t add(const std::string& principal, std::size_t worker, int walks, std::uint64_t cost) {
    clients_.push_back({accounts_.of(principal), worker, cost, 0, walks != 0});
    for (int i = 0; i < walks; ++i) ask(clients_.size() - 1);
    return clients_.size() - 1;
  }
  void leave(std::size_t client) {
    clients_[client].asks = false;
    workers_[clients_[client].worker]->drop(*connection(client), [](const LaneQueue::Walk&) {});
  }
  /// For so long, by the clock of costs.
  void run(std::uint64_t time) {
    const std::uint64_t until = now_ + time;
    for (std::size_t worker = 0; worker < workers_.size(); ++worker) grant(worker);
    while (!ends_.empty() && std::get<0>(ends_.top()) <= until) {
      const auto [at, client] = ends_.top();
      ends_.pop();
      now_ = at;
      Client& of = clients_[client];
      workers_[of.worker]->give_back(*of.account, of.cost);
      of.served += of.cost;
      if (of.asks) ask(client);
      grant(of.worker);
    }
    now_ = until;
  }
  /// What all clients of a principal had since the last time that this was asked.
  std::uint64_t take_served(const std::string& principal) {
    std::uint64_t served = 0;
    for (Client& client : clients_) {
      if (client.account->name == principal) served += std::exchange(client.served, 0);
    }
    return served;
  }
  std::uint64_t take_served(std::size_t client) {
    return std::exchange(clients_[client].served, 0);
  }
  std::size_t waiting() const {
    std::size_t waiting = 0;
    for (const auto& worker : workers_) waiting += worker->waiting();
    return waiting;
  }

 private:
  struct Client {
    PrincipalRef account;
    std::size_t worker;
    std::uint64_t cost;
    std::uint64_t served;
    bool asks;
  };
  using End = std::tuple<std::uint64_t, std::size_t>;

  // Placeholders that are never dereferenced.
  static const Connection* connection(std::size_t client) {
    return reinterpret_cast<const Connection*>((client + 1) * 4096);
  }
  static Request* request(std::size_t client) {
    return reinterpret_cast<Request*>((client + 1) * 4096);
  }
  static std::size_t client_of(const Request* request) {
    return reinterpret_cast<std::uintptr_t>(request) / 4096 - 1;
  }
  void begin(std::size_t client) { ends_.emplace(now_ + clients_[client].cost, client); }
  void ask(std::size_t client) {
    const Client& of = clients_[client];
    if (workers_[of.worker]->take(of.account, *connection(client), {request(client), nullptr})) {
      begin(client);
    }
  }
  void grant(std::size_t worker) {
    while (const auto walk = workers_[worker]->next()) begin(client_of(walk->request));
  }

  PrincipalAccounts accounts_;
  LaneRounds rounds_;
  std::vector<std::unique_ptr<LaneQueue>> workers_;
  std::deque<Client> clients_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::uint64_t now_ = 0;
};

constexpr std::uint64_t kLong = 4'000'000;
/// What a part may lack, however long that is: a walk of another in each lane, at either end.
constexpr std::uint64_t kLongestWalk = 8000;
constexpr std::uint64_t kBound = 2 * kLanes * kLongestWalk;

TEST(LaneQueue, ALaneIsTakenAtOnceWhileOneIsFree) {
  Lanes lanes(1);
  lanes.add("greedy", 0, kLanes, 1000);
  EXPECT_EQ(lanes.waiting(), 0u);
  lanes.add("greedy", 0, 1, 1000);
  EXPECT_EQ(lanes.waiting(), 1u);
}

// Two hundred walks of each of some greedy ones, by one connection or by many; another one has a
// few walks, or just enough to use its share.
TEST(LaneQueue, BesideNGreedyPrincipalsAnotherHasItsPart) {
  for (const std::uint64_t greedy : {1u, 2u, 5u}) {
    for (const std::uint64_t connections : {1u, 20u}) {
      Lanes lanes(1);
      for (std::uint64_t i = 0; i < greedy; ++i) {
        for (std::uint64_t c = 0; c < connections; ++c) {
          lanes.add("greedy " + std::to_string(i), 0, 200, 8000);
        }
      }
      lanes.run(kLong / 10);
      lanes.add("other", 0, kLanes, 500);
      lanes.run(kLong / 10);
      lanes.take_served("other");
      lanes.run(kLong);
      EXPECT_GE(lanes.take_served("other") + kBound, kLong * kLanes / (greedy + 1))
          << greedy << ", " << connections;
    }
  }
}

// A walk of one that asks seldom begins with the next lane that becomes free.
TEST(LaneQueue, OneThatAsksSeldomHasTheNextLane) {
  Lanes lanes(1);
  lanes.add("greedy", 0, 1000, 8000);
  lanes.run(kLong);
  for (int i = 0; i < 10; ++i) {
    const std::size_t other = lanes.add("other", 0, 1, 10);
    lanes.leave(other);  // after this one
    lanes.add("other", 0, 1, 10);
    lanes.run(8000 + 10);
    EXPECT_GE(lanes.take_served("other"), 10u) << i;
    lanes.run(kLong / 100);
  }
}

// The greedy one has clients at both workers, the other at one: each half of the node.
TEST(LaneQueue, APrincipalsShareIsOneForAllWorkers) {
  Lanes two(2);
  two.add("greedy", 0, 200, 8000);
  const std::size_t beside = two.add("greedy", 1, 200, 8000);
  two.add("other", 1, 200, 3000);
  two.run(kLong / 10);
  two.take_served("other");
  two.take_served(beside);
  two.run(kLong);
  EXPECT_GE(two.take_served("other") + 2 * kBound, 2 * kLong * kLanes / 2)
      << "each worker for itself would give it 1/4";
  EXPECT_GT(two.take_served(beside), 0u) << "but what waits where the other is goes on, too";

  Lanes four(4);
  for (std::size_t worker = 0; worker < 4; ++worker) {
    four.add("greedy 1", worker, 200, 8000);
    four.add("greedy 2", worker, 200, 700);
  }
  four.add("other", 0, 200, 2000);
  four.add("other", 1, 200, 2000);
  four.run(kLong / 10);
  four.take_served("other");
  four.run(kLong);
  EXPECT_GE(four.take_served("other") + 4 * kBound, 4 * kLong * kLanes / 3);
}

TEST(LaneQueue, ConnectionsOfAPrincipalTakeTurns) {
  Lanes lanes(1);
  const std::size_t many = lanes.add("one", 0, 500, 1000);
  const std::size_t few = lanes.add("one", 0, kLanes, 1000);
  lanes.run(kLong / 10);
  lanes.take_served(many);
  lanes.take_served(few);
  lanes.run(kLong);
  const auto served = static_cast<double>(lanes.take_served(few));
  EXPECT_GE(served / (kLong * kLanes), 0.49);
}

// No principal is charged for long for lanes that no other wanted, and none saves up credit.
TEST(LaneQueue, WhatWasFreeIsNotPaidForLong) {
  Lanes lanes(1);
  lanes.add("early", 0, 100, 8000);
  lanes.run(20 * kLong);
  lanes.add("late", 0, 100, 8000);
  lanes.take_served("early");
  lanes.run(kLong);
  EXPECT_GE(static_cast<double>(lanes.take_served("early")) / (kLong * kLanes), 0.47);
}

TEST(LaneQueue, OfManyPrincipalsEachHasItsPart) {
  constexpr int kMany = 100;
  Lanes lanes(1);
  for (int i = 0; i < kMany; ++i) lanes.add("p" + std::to_string(i), 0, 1 + i % 7, 100 + i * 7);
  lanes.run(2 * kLong);
  for (int i = 0; i < kMany; ++i) {
    const auto served = static_cast<double>(lanes.take_served("p" + std::to_string(i)));
    EXPECT_GE(served * kMany / (2 * kLong * kLanes), 0.9) << i;
  }
}

// Walks that come and go by chance, connections that end: in the end nothing waits or runs.
TEST(LaneQueue, NothingIsLeftOfThoseWhoWent) {
  base::Random random(base::seed_from_environment(11));
  Lanes lanes(3);
  std::vector<std::size_t> clients;
  for (int round = 0; round < 300; ++round) {
    if (random.below(3) != 0 || clients.empty()) {
      clients.push_back(lanes.add("p" + std::to_string(random.below(5)), random.below(3),
                                  static_cast<int>(random.below(40)), 1 + random.below(9000)));
    } else {
      lanes.leave(clients[random.below(clients.size())]);
    }
    lanes.run(random.below(20000));
  }
  for (const std::size_t client : clients) lanes.leave(client);
  lanes.run(kLong);
  EXPECT_EQ(lanes.waiting(), 0u);
}

}  // namespace
}  // namespace espalier::offload
