// SPDX-License-Identifier: Apache-2.0
// A client that reads a map by one-sided READs alone: gets, floors and scans, while the host
// writes. The host takes part only by granting a lease.
//
// The reader has no thread and no timer: its owner polls it, and sends its lease requests to the
// host (see LeaseGuard::due).
//
// Thread: one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "fabric/endpoint.hpp"
#include "kinds/map/remote/feed_follower.hpp"
#include "kinds/map/remote/get_group.hpp"
#include "kinds/map/remote/one_sided_access.hpp"
#include "kinds/map/walk/walker.hpp"

namespace espalier::place {

/// The Place of remote walks.
class OneSidedPlace {
 public:
  using AccessType = OneSidedAccess;
  using GuardType = LeaseGuard;
  static constexpr bool kWrites = false;

  OneSidedPlace(const tree::MapView& view, const base::LeaseTerms& terms)
      : view_(view), guard_(terms) {}
  [[nodiscard]] const tree::MapView& view() const { return view_; }
  [[nodiscard]] LeaseGuard& guard() { return guard_; }

 private:
  tree::MapView view_;
  LeaseGuard guard_;
};

class OneSidedReader {
 public:
  struct Options {
    std::uint32_t lanes = 32;  // walks in flight
    base::LeaseTerms terms{};
    std::function<std::uint64_t()> now_ns;  // any monotonic clock
    /// Cache of nodes, shared with others of the same thread and store; outlives it. Null: none.
    NodeCache* cache = nullptr;
    /// Whether heads of leaves are cached too: then a get waits once, where READs keep their order.
    bool remembers_leaves = true;
    /// Maximum leaves that a scan reads ahead in one doorbell; 0: none. Needs a cache.
    std::uint32_t leaves_ahead = LeavesAhead::kMost;
    /// Weight by which cached nodes are read under load all the same
    /// (kinds/map/remote/balancer.hpp); 0: never.
    std::uint32_t balance = 0;
    /// Whether gets go in groups (kinds/map/remote/get_group.hpp). Applies where READs keep their
    /// order, nodes and heads of leaves are cached, and nothing is balanced.
    bool groups_gets = false;
  };

  /// `pair` is connected and its completions go to `completions`, which serves nothing else;
  /// `region` is what the host registered for reading, and `view` is of a map in it. All outlive
  /// this.
  OneSidedReader(fabric::Endpoint& endpoint, fabric::QueuePair& pair,
                 fabric::CompletionQueue& completions, const fabric::RemoteRegion& region,
                 const tree::MapView& view, Options options);
  /// The same with a port shared with other readers of the same thread; it outlives this.
  OneSidedReader(ReadPort& port, const tree::MapView& view, Options options);
  OneSidedReader(const OneSidedReader&) = delete;
  OneSidedReader& operator=(const OneSidedReader&) = delete;

  /// Queues reads: get, floor, scans. Other operations fail with `unsupported`. What the requests
  /// point to must live until their completion. Errors in completions:
  ///   connection_lost  the queue pair has failed, or no lease is granted
  ///   not_found        the map was dropped
  ///   contended        see Code; a walk tries Walker::kAttemptsMax times
  void submit(std::span<const Request> requests, Handler& handler);
  void submit(const tree::WalkRequest& request);
  /// Null: no balancing.
  [[nodiscard]] const Balancer* balancer() const { return balancer_ ? &*balancer_ : nullptr; }
  /// Takes what has arrived and resumes walks. Returns the number of pending requests.
  std::size_t poll();
  [[nodiscard]] std::size_t pending() const {
    return walker_.pending() + (gets_ ? gets_->pending() : 0);
  }

  /// From now on gets, and scans from a key on, begin with a READ of their key: one round trip if
  /// the leaf arrives. A misled walk continues normally.
  /// Requires: the pair's session may use the key; `bytes` is a multiple of 8, and at least a
  /// node's header.
  void read_by_key(KeyedReads keyed);
  /// From now on the cache follows the map's mapping feed, while the reader is polled. No effect
  /// without a cache.
  void follow(const FeedCursor& feed);
  /// Null: no feed.
  [[nodiscard]] const FeedFollower* feed() const { return feed_ ? &*feed_ : nullptr; }
  [[nodiscard]] const tree::MapView& view() const { return place_.view(); }
  [[nodiscard]] LeaseGuard& lease() { return place_.guard(); }
  /// Keeps readable what the completing walk has read, until lease().end() of the tick that it
  /// returns. Requires: called by Handler::done of a walk of this reader.
  [[nodiscard]] std::uint32_t hold_completing();
  /// Fails all pending reads: the host will not answer any more.
  void fail();
  /// Samples of the leaves that answered, by which the host learns which are read most; the owner
  /// sends and clears them.
  [[nodiscard]] tree::LeafSamples& samples() { return state_.samples; }
  /// Counts of its port.
  [[nodiscard]] const tree::WalkTraffic& traffic() const { return port_.traffic(); }
  [[nodiscard]] const AheadCounts& ahead() const { return state_.ahead; }
  [[nodiscard]] std::uint64_t restarts() const { return walker_.restarts(); }
  [[nodiscard]] std::uint64_t met_changes() const { return walker_.met_changes(); }
  /// Gets that were answered in groups.
  [[nodiscard]] std::uint64_t grouped() const { return gets_ ? gets_->answered() : 0; }
  /// The lowest cached node on the way to a key, as a hint for others; none: nothing is cached, or
  /// the key is invalid.
  [[nodiscard]] wire::Ref remembered(std::string_view key);
  /// Null: no cache.
  [[nodiscard]] const MapCache* cache() const { return cache_ ? &*cache_ : nullptr; }
  [[nodiscard]] MapCache* cache() { return cache_ ? &*cache_ : nullptr; }

 private:
  OneSidedPlace place_;
  std::function<std::uint64_t()> now_ns_;
  std::optional<ReadPort> own_port_;
  ReadPort& port_;
  std::optional<Balancer> balancer_;
  std::optional<MapCache> cache_;
  std::optional<FeedFollower> feed_;
  ReaderState state_;
  tree::Walker<OneSidedPlace> walker_;
  std::optional<GetGroup> gets_;  // null: gets are walks
};

}  // namespace espalier::place

namespace espalier::tree {
extern template class Walker<place::OneSidedPlace>;
}  // namespace espalier::tree
