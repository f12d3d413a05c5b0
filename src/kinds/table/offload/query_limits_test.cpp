// SPDX-License-Identifier: Apache-2.0
// Which queries get places, in virtual time: a query that has a place works, for slices.
#include "kinds/table/offload/query_limits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace espalier::offload {
namespace {

using Query = std::unique_ptr<QueryLimits::Query>;

/// Clients that always have as many queries open as they want and may, each of which ends when it
/// has worked for some slices.
class Queries {
 public:
  void add(const std::string& principal, std::uintptr_t connection, std::size_t wanted) {
    clients_.push_back({accounts_.of(principal), connection, wanted, 0, {}});
  }
  /// So many times, all that have a place work for a part of a slice.
  void run(int times) {
    for (; times != 0; --times) {
      // By turns, so that none always comes first to what is left.
      std::ranges::rotate(clients_, clients_.begin() + 1);
      for (Client& client : clients_) {
        while (client.open.size() < client.wanted && open(client)) {
        }
        std::erase_if(client.open, [&](One& one) { return work(client, one); });
      }
    }
  }
  /// How long queries of a principal have worked since the last time, of all connections or of one.
  double take_served(const std::string& principal, std::uintptr_t connection = 0) {
    double served = 0;
    for (Client& client : clients_) {
      const bool wanted = connection == 0 || client.connection == connection;
      if (client.account->name != principal || !wanted) continue;
      served += static_cast<double>(std::exchange(client.served, 0));
    }
    return served;
  }

  QueryLimits limits;

 private:
  struct One {
    Query query;
    std::uint64_t worked = 0;
  };
  struct Client {
    PrincipalRef account;
    std::uintptr_t connection;  // an id that is never dereferenced
    std::size_t wanted;
    std::uint64_t served;
    std::vector<One> open;
  };
  bool open(Client& client) {
    Query query =
        limits.open(client.account, reinterpret_cast<const Connection*>(client.connection));
    if (query == nullptr) return false;
    client.open.push_back({std::move(query), 0});
    return true;
  }
  /// Whether it has ended.
  static bool work(Client& client, One& one) {
    constexpr std::uint64_t kStep = QueryLimits::kSliceNs / 4;
    if (one.query->must_yield()) one.query->give_place();
    if (!one.query->take_place()) return false;
    one.worked += kStep;
    client.served += kStep;
    one.query->worked(one.worked);
    return one.worked >= 3 * QueryLimits::kSliceNs;
  }

  PrincipalAccounts accounts_;
  std::vector<Client> clients_;
};

TEST(QueryLimits, BesideNGreedyPrincipalsAnotherHasItsPart) {
  for (const std::size_t greedy : {1u, 2u, 5u}) {
    Queries queries;
    for (std::size_t i = 0; i < greedy; ++i) {
      for (std::uintptr_t connection = 1; connection <= 40; ++connection) {
        queries.add("greedy " + std::to_string(i), 100 * i + connection, 40);
      }
    }
    const auto served_all = [&] {
      double served = 0;
      for (std::size_t i = 0; i < greedy; ++i) {
        served += queries.take_served("greedy " + std::to_string(i));
      }
      return served;
    };
    queries.run(200);
    for (std::uintptr_t connection = 1; connection <= 3; ++connection) {
      queries.add("other", 1000 + connection, 60);
    }
    queries.run(200);  // in which some of theirs end
    queries.take_served("other");
    served_all();
    queries.run(1000);
    const double other = queries.take_served("other");
    const double all = other + served_all();
    // However long that is, it lacks no more than a whole query of another in each place.
    constexpr double kBound = double{QueryLimits::kRunning} * 3 * QueryLimits::kSliceNs;
    EXPECT_GE(other + kBound, all / (static_cast<double>(greedy) + 1)) << greedy;
  }
}

TEST(QueryLimits, ConnectionsOfAPrincipalTakeTurns) {
  Queries queries;
  queries.add("one", 1, 250);
  queries.run(200);
  queries.add("one", 2, 100);
  queries.run(200);
  queries.take_served("one", 1);
  queries.take_served("one", 2);
  queries.run(1000);
  const double few = queries.take_served("one", 2);
  EXPECT_GE(few / (few + queries.take_served("one", 1)), 0.45);
}

TEST(QueryLimits, OnePrincipalHasHalfOfWhatWaitsAtMost) {
  QueryLimits limits;
  PrincipalAccounts accounts;
  std::vector<Query> all;
  const auto open = [&](const char* principal) {
    for (const std::size_t before = all.size();;) {
      Query query = limits.open(accounts.of(principal), nullptr);
      if (query == nullptr) return all.size() - before;
      all.push_back(std::move(query));
    }
  };
  EXPECT_EQ(open("greedy"), QueryLimits::kOpen / 2);
  EXPECT_EQ(open("other"), QueryLimits::kOpen / 4);
  all.clear();
  EXPECT_EQ(limits.opened(), 0u);
  EXPECT_EQ(open("other"), QueryLimits::kOpen / 2);
}

// A query that waits for its reader has no place, but keeps its rows: of these there are so many.
TEST(QueryLimits, ThoseThatWaitForReadersHaveNoPlaces) {
  QueryLimits limits;
  PrincipalAccounts accounts;
  std::vector<Query> slow;
  std::uint32_t begun = 0;
  for (std::uint32_t i = 0; i < 2 * QueryLimits::kBegun; ++i) {
    const auto* const connection = reinterpret_cast<const Connection*>(std::uintptr_t{i} + 1);
    slow.push_back(limits.open(accounts.of("slow"), connection));
    if (!slow.back()->take_place()) continue;
    ++begun;
    slow.back()->give_place();
  }
  EXPECT_EQ(begun, QueryLimits::kBegun / 2);
  EXPECT_FALSE(limits.open(accounts.of("slow"), nullptr)->take_place());
  EXPECT_EQ(limits.running(), 0u);
  const Query other = limits.open(accounts.of("other"), nullptr);
  EXPECT_TRUE(other->take_place());
  EXPECT_FALSE(other->must_yield());
  slow.front()->give_place();
  EXPECT_TRUE(slow.front()->take_place()) << "it goes on where it was";
}

TEST(QueryLimits, AQueryThatEndsLeavesItsPlace) {
  QueryLimits limits;
  PrincipalAccounts accounts;
  std::vector<Query> running;
  for (std::uint32_t i = 0; i < QueryLimits::kRunning; ++i) {
    running.push_back(limits.open(accounts.of("one"), nullptr));
    EXPECT_TRUE(running.back()->take_place());
  }
  Query first = limits.open(accounts.of("one"), nullptr);
  Query second = limits.open(accounts.of("one"), nullptr);
  EXPECT_FALSE(first->take_place());
  EXPECT_FALSE(second->take_place());
  first.reset();  // one that waits is forgotten
  running.pop_back();
  EXPECT_TRUE(second->take_place());
  EXPECT_EQ(limits.running(), QueryLimits::kRunning);
}

TEST(QueryLimits, MemoryOfGroupsIsBoundedTogetherAndSharedByPrincipals) {
  QueryLimits limits;
  PrincipalAccounts accounts;
  constexpr std::uint64_t kLeast = 64 << 10;
  std::uint64_t taken = 0;
  std::vector<std::uint64_t> each;
  const PrincipalRef greedy = accounts.of("greedy");
  for (std::uint32_t i = 0; i < QueryLimits::kRunning; ++i) {
    each.push_back(limits.take_group_bytes(*greedy, kLeast));
    taken += each.back();
    EXPECT_GE(each.back(), kLeast);
    EXPECT_LE(each.back(), QueryLimits::kGroupBytesOfOne);
  }
  EXPECT_EQ(each.front(), QueryLimits::kGroupBytesOfOne);
  EXPECT_LE(taken, QueryLimits::kGroupBytes / 2 + QueryLimits::kRunning * kLeast);
  const PrincipalRef other = accounts.of("other");
  const std::uint64_t others = limits.take_group_bytes(*other, kLeast);
  EXPECT_EQ(others, QueryLimits::kGroupBytesOfOne);
  limits.give_group_bytes(*other, others);
  for (const std::uint64_t bytes : each) limits.give_group_bytes(*greedy, bytes);
  EXPECT_EQ(limits.group_bytes_left(), std::int64_t{QueryLimits::kGroupBytes});
}

}  // namespace
}  // namespace espalier::offload
