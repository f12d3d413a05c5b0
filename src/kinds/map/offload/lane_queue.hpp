// SPDX-License-Identifier: Apache-2.0
// Fair queueing of long walks: a scheduler runs a limited number of long walks concurrently, each
// in a lane, and all schedulers of a node share the accounts of service received.
//
// While lanes are free a walk takes one immediately, and its principal's account is charged when it
// ends. When all lanes are taken, walks wait, and each freed lane goes
//
//   to the principal with the lowest standing on the node among those that wait here;
//   of that principal, to the connection whose turn it is; and of that, to its first walk.
//
// A principal's standing is the cost of its walks in all schedulers of the node, plus an estimate
// for running ones. So a principal served by several workers gets no larger share of the node than
// one with a single connection. Rounds as in fair_queue.hpp would not do, since they belong to one
// queue: this is fair queueing by received service [Goyal, Vin and Cheng, Start-time fair queuing,
// 1996]. Its bounds:
//
// - A principal that begins to walk stands no lower than the last granted walks: no credit
//   accumulates.
// - No principal stands more than kDebtMax above these: nothing is owed for long for lanes that
//   were free.
// - Of every kStarvedGrants grants per waiting principal, each principal that waits here gets one,
//   however high it stands because of its service elsewhere: so each of its clients progresses.
//
// Cost is computed, not measured: from the items and bytes that a walk passed (LaneRounds::cost).
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
  std::atomic<std::uint64_t> served{0};   // their total cost
  std::atomic<std::uint32_t> walks{0};    // waiting or running
  std::atomic<std::uint32_t> running{0};  // of these, running
};

/// Standings of the principals of a node. Thread: any.
class LaneRounds {
 public:
  /// Estimated cost of a running walk: about the maximum of one.
  static constexpr std::uint64_t kEstimate = 8192;
  static constexpr std::uint64_t kDebtMax = 64 * kEstimate;

  /// Cost of a walk that has passed these.
  [[nodiscard]] static std::uint64_t cost(std::uint64_t items, std::uint64_t bytes) {
    constexpr std::uint64_t kDescent = 64;
    constexpr std::uint64_t kBytesOfAnItem = 32;  // copied in the time of finding one item
    return kDescent + items + bytes / kBytesOfAnItem;
  }

  /// Registers a waiting or running walk, until end().
  void begin(LaneShare& share) const;
  void end(LaneShare& share) const { share.walks.fetch_sub(1, std::memory_order_relaxed); }
  /// A walk gets a lane, until charge(). `waited`: lanes were contended.
  void grant(LaneShare& share, bool waited);
  void charge(LaneShare& share, std::uint64_t cost) const;
  [[nodiscard]] std::uint64_t standing(const LaneShare& share) const {
    return share.served.load(std::memory_order_relaxed) +
           kEstimate * share.running.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> present_{0};  // standing of the principals granted lanes last
};

/// The lanes of one scheduler. Thread: that of the scheduler.
class LaneQueue {
 public:
  /// Grants to others, per waiting principal, after which a waiting one gets a lane.
  static constexpr std::uint64_t kStarvedGrants = 256;
  /// Number of waiting principals, in order of waiting time, among which the lowest is found.
  static constexpr std::size_t kCompared = 512;

  struct Walk {
    Request* request;
    const memory::HeldVersion* held;
  };

  /// The rounds outlive it.
  LaneQueue(LaneRounds& rounds, std::uint32_t lanes) : rounds_(rounds), lanes_(lanes) {}
  LaneQueue(const LaneQueue&) = delete;
  LaneQueue& operator=(const LaneQueue&) = delete;

  /// Takes a lane. False: none is free, or others wait; the walk is queued for next().
  /// Errors: std::bad_alloc, with nothing taken. Cost: two counter updates of the account.
  [[nodiscard]] bool take(const PrincipalRef& account, const Connection& connection,
                          const Walk& walk);
  /// The next walk that gets a lane; nothing: none waits, or no lane is free. The caller begins it.
  [[nodiscard]] std::optional<Walk> next();
  /// A walk on this account has ended.
  void give_back(PrincipalAccount& account, std::uint64_t cost);
  /// Removes the waiting walks of a connection, and calls `ended` with each.
  template <class Ended>
  void drop(const Connection& connection, const Ended& ended);

  [[nodiscard]] std::size_t waiting() const { return waiting_; }
  [[nodiscard]] std::uint32_t running() const { return running_; }

 private:
  struct OfConnection {
    const Connection* connection;
    std::deque<Walk> walks;
  };
  /// A waiting principal. Principals, and connections of one, are ordered by the time of their last
  /// lane, or of the begin of waiting.
  struct Waiting {
    PrincipalRef account;
    LaneShare& share;             // its share
    std::uint64_t grants_before;  // the queue's grants at its last one
    std::list<OfConnection> connections;
  };
  using Principals = std::list<Waiting>;

  [[nodiscard]] Principals::iterator choose();
  void remove_if_empty(Principals::iterator principal);

  LaneRounds& rounds_;
  const std::uint32_t lanes_;
  std::uint32_t running_ = 0;
  std::size_t waiting_ = 0;
  std::uint64_t grants_ = 0;  // grants to walks that waited
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
