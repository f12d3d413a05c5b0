// SPDX-License-Identifier: Apache-2.0
// Which queries of a node run, which wait, and how much memory their groups have together. What is
// beyond that is refused: so many clients cannot make it hold more.
//
//   open() ---> waits for a place ---take_place()---> runs ---give_place()---> its reader's turn
//     |               ^                                |                            |
//   refused           +--- its slice is used up -------+        take_place() -------+
//
// A query has a place only while it has something to do: one that waits for its reader has none, so
// slow readers keep nobody from running. One that has run for a slice, while others wait for
// places, waits behind them. Places go to principals by turns, and of each to its connections, by
// the time that helpers have worked for them (fair_queue.hpp).
//
// Of what queries hold while they wait (to be open; to have begun, which takes memory for rows;
// memory for groups) a principal takes no more once it has as much as is left: so there is always
// some for another one, and as queries come and go, n principals that ask for as much as they can
// have one part in n + 1 each [Choudhury and Hahne, Dynamic queue length thresholds for
// shared-memory packet switches, 1998]. Of those that its principal may have begun a connection has
// at most as many as are left to others in the same way.
//
// Thread: any; a query belongs to one at a time. Time is what callers say it is.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "engine/fair_queue.hpp"
#include "engine/principal_accounts.hpp"

namespace espalier::offload {

class Connection;

/// A principal's queries of tables. Guarded by the lock of QueryLimits.
struct QueryShare final : AccountPart {
  FairQueue::Group group;
  std::uint32_t open = 0;
  std::uint32_t begun = 0;
  std::uint64_t group_bytes = 0;
};

class QueryLimits {
 public:
  static constexpr std::uint32_t kRunning = 64;
  static constexpr std::uint32_t kWaiting = 1000;
  static constexpr std::uint32_t kOpen = kRunning + kWaiting;
  static constexpr std::uint32_t kBegun = 256;  ///< of those that are open
  static constexpr std::uint64_t kSliceNs = 10'000'000;
  static constexpr std::uint64_t kGroupBytes = std::uint64_t{1} << 30;  ///< of all together
  static constexpr std::uint64_t kGroupBytesOfOne = std::uint64_t{64} << 20;

  /// One that is open.
  class Query;

  QueryLimits() : places_(kSliceNs) {}
  QueryLimits(const QueryLimits&) = delete;
  QueryLimits& operator=(const QueryLimits&) = delete;

  /// One more of this account, by this connection, which only tells its queries from others'. Null:
  /// there are as many as may be. Errors: std::bad_alloc.
  [[nodiscard]] std::unique_ptr<Query> open(PrincipalRef account, const Connection* connection);

  /// Takes memory for the groups of one query: less, the less is left, but never less than `least`,
  /// which all that run may have beyond the limit. To be given back.
  [[nodiscard]] std::uint64_t take_group_bytes(PrincipalAccount& account, std::uint64_t least);
  void give_group_bytes(PrincipalAccount& account, std::uint64_t bytes);
  [[nodiscard]] std::int64_t group_bytes_left() const;
  /// Those that have places.
  [[nodiscard]] std::uint32_t running() const;
  [[nodiscard]] std::uint32_t opened() const;

 private:
  struct OfConnection {
    explicit OfConnection(FairQueue::Group& group) : flow(group) {}
    FairQueue::Flow flow;
    std::uint32_t queries = 0;
    std::uint32_t begun = 0;
  };
  using Connections = std::map<std::pair<const PrincipalAccount*, const Connection*>, OfConnection>;
  using Lock = std::lock_guard<std::mutex>;

  void grant();

  mutable std::mutex mutex_;  // guards what follows, and what is the accounts' for it
  FairQueue places_;
  Connections connections_;
  std::uint32_t open_ = 0;
  std::uint32_t begun_ = 0;
  std::int64_t group_bytes_left_ = std::int64_t{kGroupBytes};
  std::atomic<bool> others_wait_{false};  // for places
};

class QueryLimits::Query : private FairQueue::Item {
 public:
  /// Gives back all that it has.
  ~Query();
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  /// How long helpers have worked for it, ever. To be said before what follows.
  void worked(std::uint64_t ns) { worked_ns_ = ns; }
  /// Whether it has a place: from now on, or for long. If not it waits for one, and is to ask
  /// again.
  [[nodiscard]] bool take_place();
  /// It has nothing to do now. Nothing, if it has no place.
  void give_place();
  /// Whether it has worked for a slice while others wait for places. Cost: little if none do.
  [[nodiscard]] bool must_yield() const {
    return limits_.others_wait_.load(std::memory_order_relaxed) &&
           worked_ns_ - worked_before_ns_ >= kSliceNs;
  }
  [[nodiscard]] PrincipalAccount& account() const { return *account_; }

 private:
  friend class QueryLimits;
  enum class State : std::uint8_t { idle, waiting, running };
  Query(QueryLimits& limits, PrincipalRef account, Connections::iterator connection)
      : Item(connection->second.flow),
        limits_(limits),
        account_(std::move(account)),
        connection_(connection) {}
  bool begin();
  void charge();

  QueryLimits& limits_;
  const PrincipalRef account_;
  const Connections::iterator connection_;
  State state_ = State::idle;
  bool begun_ = false;
  std::uint64_t worked_ns_ = 0;
  std::uint64_t worked_before_ns_ = 0;  // it had its place
};

}  // namespace espalier::offload
