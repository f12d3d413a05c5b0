// SPDX-License-Identifier: Apache-2.0
// Who gets a lane: long walks of one scheduler, of which only so many run together, and what all
// schedulers of a node know of who had how many.
//
// While lanes are free a walk takes one at once, and its principal's account is charged when it
// ends. When all are taken, walks wait, and each lane that becomes free goes
//
//   to the principal that stands lowest on the node, of those that wait here;
//   of that principal, to its connection whose turn it is; and of that, to its first walk.
//
// A principal stands at what its walks have cost in all schedulers of the node, and an estimate for
// those that run. So a principal that is served by several workers gets no more of the node than
// one that has a single connection. That is why principals do not take turns by rounds, as in
// fair_queue.hpp, whose rounds belong to one queue: it is fair queueing by the service had so far
// [Goyal, Vin and Cheng, Start-time fair queuing, 1996]. Its bounds:
//
// - One that begins to walk stands no lower than the walks that were granted last: nobody saves up.
// - None stands more than kDebtMax above these: nobody pays long for lanes that were free.
// - One that waits here gets a lane of each kStarvedGrants for each principal that waits, however
//   high it stands because of what it has elsewhere: so each of its clients goes on.
//
// Cost is counted, not measured: items and bytes that a walk passed (LaneRounds::cost).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <unordered_map>

#include "engine/principal_accounts.hpp"

namespace espalier::memory {
struct HeldVersion;
}

namespace espalier::offload {

class Connection;
struct Request;

/// A principal's long walks on all workers. Thread: any.
struct LaneShare final : AccountPart {
  std::atomic<std::uint64_t> served{0};   // what they have cost
  std::atomic<std::uint32_t> walks{0};    // that wait or run
  std::atomic<std::uint32_t> running{0};  // of these
};

/// Where the principals of a node stand. Thread: any.
class LaneRounds {
 public:
  /// What a walk is taken for until it has ended: about as much as one may cost.
  static constexpr std::uint64_t kEstimate = 8192;
  static constexpr std::uint64_t kDebtMax = 64 * kEstimate;

  /// Of a walk that has passed these.
  [[nodiscard]] static std::uint64_t cost(std::uint64_t items, std::uint64_t bytes) {
    constexpr std::uint64_t kDescent = 64;
    constexpr std::uint64_t kBytesOfAnItem = 32;  // that take as long to copy as an item to find
    return kDescent + items + bytes / kBytesOfAnItem;
  }

  /// A walk of it waits or runs from now on, until end().
  void begin(LaneShare& share) const;
  void end(LaneShare& share) const { share.walks.fetch_sub(1, std::memory_order_relaxed); }
  /// A walk of it has a lane from now on, until charge(). `waited`: others had to wait for it.
  void grant(LaneShare& share, bool waited);
  void charge(LaneShare& share, std::uint64_t cost) const;
  [[nodiscard]] std::uint64_t standing(const LaneShare& share) const {
    return share.served.load(std::memory_order_relaxed) +
           kEstimate * share.running.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> present_{0};  // where those stood that were granted lanes
};

/// The lanes of one scheduler. Thread: that of the scheduler.
class LaneQueue {
 public:
  /// After how many grants to others, for each principal that waits, one that waits gets a lane.
  static constexpr std::uint64_t kStarvedGrants = 256;
  /// Of so many principals that wait the lowest is found; of more, that of the ones that have
  /// waited longest.
  static constexpr std::size_t kCompared = 512;

  struct Walk {
    Request* request;
    const memory::HeldVersion* held;
  };

  /// The rounds outlive it.
  LaneQueue(LaneRounds& rounds, std::uint32_t lanes) : rounds_(rounds), lanes_(lanes) {}
  LaneQueue(const LaneQueue&) = delete;
  LaneQueue& operator=(const LaneQueue&) = delete;

  /// Takes a lane. False: there is none now, or others wait for one; it waits, for next().
  /// Errors: std::bad_alloc, and nothing was taken. Cost: two counts of the account.
  [[nodiscard]] bool take(const PrincipalRef& account, const Connection& connection,
                          const Walk& walk);
  /// The next walk that gets a lane; nothing: none waits, or no lane is free. Its owner begins it.
  [[nodiscard]] std::optional<Walk> next();
  /// A walk on this account has ended.
  void give_back(PrincipalAccount& account, std::uint64_t cost);
  /// Calls `ended` with each walk of a connection that waits, which it does no more.
  template <class Ended>
  void drop(const Connection& connection, const Ended& ended);

  [[nodiscard]] std::size_t waiting() const { return waiting_; }
  [[nodiscard]] std::uint32_t running() const { return running_; }

 private:
  struct OfConnection {
    const Connection* connection;
    std::deque<Walk> walks;
  };
  /// A principal that waits. Its connections, and it among others, stand in the order in which they
  /// had a lane last, or began to wait.
  struct Waiting {
    PrincipalRef account;
    LaneShare& share;             // of it
    std::uint64_t grants_before;  // of this queue
    std::list<OfConnection> connections;
  };
  using Principals = std::list<Waiting>;

  [[nodiscard]] Principals::iterator choose();
  void remove_if_empty(Principals::iterator principal);

  LaneRounds& rounds_;
  const std::uint32_t lanes_;
  std::uint32_t running_ = 0;
  std::size_t waiting_ = 0;
  std::uint64_t grants_ = 0;  // to walks that waited
  Principals principals_;
  std::unordered_map<const PrincipalAccount*, Principals::iterator> by_account_;
};

template <class Ended>
void LaneQueue::drop(const Connection& connection, const Ended& ended) {
  for (auto principal = principals_.begin(); principal != principals_.end();) {
    const auto at = principal++;
    for (auto of = at->connections.begin(); of != at->connections.end();) {
      if (of->connection != &connection) {
        ++of;
        continue;
      }
      for (const Walk& walk : of->walks) {
        --waiting_;
        rounds_.end(at->share);
        ended(walk);
      }
      of = at->connections.erase(of);
    }
    remove_if_empty(at);
  }
}

}  // namespace espalier::offload
