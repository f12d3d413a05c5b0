// SPDX-License-Identifier: Apache-2.0
// A client that walks a map alone: gets, floors and scans by one-sided READs, while the host writes
// and knows nothing of it but a lease.
//
// The reader makes no progress by itself and keeps no time: its owner polls it, and carries its
// questions about the lease to the host (see LeaseGuard::due).
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

/// The place of walks from elsewhere.
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
    std::function<std::uint64_t()> now_ns;  // any clock that does not go back
    /// What it remembers of nodes, with others of the same thread and store; outlives it. Null:
    /// nothing.
    NodeCache* cache = nullptr;
    /// Whether heads of leaves are remembered, too: then a get waits once, where READs keep their
    /// order.
    bool remembers_leaves = true;
    /// Leaves that a scan has brought before it comes to them, at once and at most; 0: none, and
    /// without a cache none.
    std::uint32_t leaves_ahead = LeavesAhead::kMost;
    /// Under load some nodes that are remembered are read all the same
    /// (kinds/map/remote/balancer.hpp), by this weight; 0: none.
    std::uint32_t balance = 0;
    /// Whether gets go in groups (kinds/map/remote/get_group.hpp), where READs keep their order,
    /// nodes and heads of leaves are remembered, and nothing is balanced.
    bool groups_gets = false;
  };

  /// `pair` is connected and tells its completions in `completions`, which serves nothing else;
  /// `region` is what the host offers to be read, and `view` is of a map in it. All outlive this.
  OneSidedReader(fabric::Endpoint& endpoint, fabric::QueuePair& pair,
                 fabric::CompletionQueue& completions, const fabric::RemoteRegion& region,
                 const tree::MapView& view, Options options);
  /// The same by a port that serves other readers, too, all of the same thread; it outlives this.
  OneSidedReader(ReadPort& port, const tree::MapView& view, Options options);
  OneSidedReader(const OneSidedReader&) = delete;
  OneSidedReader& operator=(const OneSidedReader&) = delete;

  /// Queues reads: get, floor, scans. Others are refused with `unsupported`. What they point to
  /// must live until their completion. Answers come with:
  ///   connection_lost  the pair has failed, or there will be no lease
  ///   not_found        the map was dropped
  ///   contended        see Code; a walk tries Walker::kAttemptsMax times
  void submit(std::span<const Request> requests, Handler& handler);
  void submit(const tree::WalkRequest& request);
  /// Null: it divides nothing.
  [[nodiscard]] const Balancer* balancer() const { return balancer_ ? &*balancer_ : nullptr; }
  /// Takes what has come and lets walks go on. Returns how many are left.
  std::size_t poll();
  [[nodiscard]] std::size_t pending() const {
    return walker_.pending() + (gets_ ? gets_->pending() : 0);
  }

  /// From here on gets, and scans from a key on, begin with a READ of their key: one trip where
  /// the leaf comes. A walk that is led astray goes on by itself.
  /// Requires: the pair's session was admitted to the key; the bytes are a multiple of 8, and at
  /// least a node's header.
  void read_by_key(KeyedReads keyed);
  /// From here on what is remembered follows the map's mapping feed, while the reader is polled.
  /// Without a cache it does nothing.
  void follow(const FeedCursor& feed);
  /// Null: it follows none.
  [[nodiscard]] const FeedFollower* feed() const { return feed_ ? &*feed_ : nullptr; }
  [[nodiscard]] const tree::MapView& view() const { return place_.view(); }
  [[nodiscard]] LeaseGuard& lease() { return place_.guard(); }
  /// Keeps readable what the walk that completes just now has read, until lease().end() of the
  /// tick that it returns. Requires: called by Handler::done of a walk of this reader.
  [[nodiscard]] std::uint32_t hold_completing();
  /// Ends all reads that wait: there will be no answer from the host any more.
  void fail();
  /// From which leaves it answered: some, for the host to know which are read most; the owner sends
  /// and clears them.
  [[nodiscard]] tree::LeafSamples& samples() { return state_.samples; }
  /// Of its port.
  [[nodiscard]] const tree::WalkTraffic& traffic() const { return port_.traffic(); }
  [[nodiscard]] const AheadCounts& ahead() const { return state_.ahead; }
  [[nodiscard]] std::uint64_t restarts() const { return walker_.restarts(); }
  [[nodiscard]] std::uint64_t met_changes() const { return walker_.met_changes(); }
  /// Gets that were answered in groups.
  [[nodiscard]] std::uint64_t grouped() const { return gets_ ? gets_->answered() : 0; }
  /// The lowest node on the way to a key that it remembers, as a hint for others; none: none, or
  /// there can be no such key.
  [[nodiscard]] wire::Ref remembered(std::string_view key);
  /// Null: it remembers nothing.
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
  std::optional<GetGroup> gets_;  // null: gets are walks like all else
};

}  // namespace espalier::place

namespace espalier::tree {
extern template class Walker<place::OneSidedPlace>;
}  // namespace espalier::tree
