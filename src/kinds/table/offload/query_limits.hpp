// SPDX-License-Identifier: Apache-2.0
// Admission and scheduling of a node's queries: which run, which wait, and how much memory their
// groups share. Queries beyond the limits are refused, so that clients cannot make the node hold
// more.
//
//   open() ---> waits for a place ---take_place()---> runs ---give_place()---> its reader's turn
//     |               ^                                |                            |
//   refused           +--- its slice is used up -------+        take_place() -------+
//
// A query has a place only while it has work: one that waits for its reader has none, so slow
// readers do not block others. A query that has run for a slice, while others wait, goes to the end
// of the queue. Places are assigned round-robin among principals, and within each to its
// connections, by the helper time used (fair_queue.hpp).
//
// Dynamic thresholds bound what queries hold while they wait (being open; having begun, with memory
// for rows; memory for groups): a principal gets no more once it holds as much as is left. So some
// is always left for another one, and in the long run n greedy principals get 1 / (n + 1) each
// [Choudhury and Hahne, Dynamic queue length thresholds for shared-memory packet switches, 1998].
// The same rule divides a principal's begun queries among its connections.
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

  /// An open query.
  class Query;

  QueryLimits() : places_(kSliceNs) {}
  QueryLimits(const QueryLimits&) = delete;
  QueryLimits& operator=(const QueryLimits&) = delete;

  /// Opens a query of this account, by this connection, which serves as an id. Null: the limit is
  /// reached. Errors: std::bad_alloc.
  [[nodiscard]] std::unique_ptr<Query> open(PrincipalRef account, const Connection* connection);

  /// Reserves memory for the groups of one query: less as less is left, but never less than
  /// `least`, which every running query may have beyond the limit. The caller returns it.
  [[nodiscard]] std::uint64_t take_group_bytes(PrincipalAccount& account, std::uint64_t least);
  void give_group_bytes(PrincipalAccount& account, std::uint64_t bytes);
  [[nodiscard]] std::int64_t group_bytes_left() const;
  /// Queries with places.
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
  /// Releases everything it holds.
  ~Query();
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  /// Total helper time of the query. Call before what follows.
  void worked(std::uint64_t ns) { worked_ns_ = ns; }
  /// Whether it has a place, now or already. If not, it is queued; ask again.
  [[nodiscard]] bool take_place();
  /// Gives its place up, if it has one: it has nothing to do now.
  void give_place();
  /// Whether it has used up its slice while others wait for places. Cheap if none do.
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
