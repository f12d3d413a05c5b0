// SPDX-License-Identifier: Apache-2.0
// Gets of a hash map by one-sided READs, while the host writes and takes no part but for a lease.
//
// It makes no progress by itself and has no clock: its owner polls it, and sends its requests about
// the lease to the host (see LeaseGuard::due).
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "kinds/hash/remote/hash_get_group.hpp"
#include "kinds/hash/remote/hash_get_lane.hpp"

namespace espalier::place {

class HashGets {
 public:
  struct Options {
    std::uint32_t in_flight = 32;
    base::LeaseTerms terms{};
    std::function<std::uint64_t()> now_ns;  // any clock that does not go back
    /// The cache of buckets, shared with other maps of the region; outlives it. Null: none.
    BinCache* cache = nullptr;
    /// The cache of records likewise. Null: none, and each is read. Requires: `cache`, if set.
    RecordCache* records = nullptr;
    /// Limit on cached directories. 0: none, and a get waits twice more.
    std::uint64_t directory_bytes = std::uint64_t{4} << 20;
    /// Instead of that, a budget shared with other maps of the region; outlives it.
    DirectoryBudget* directories = nullptr;
    /// A longer value is not read: its get fails with `contended`.
    std::uint64_t value_bytes_max = hash::kValueBytesMax;
    /// Whether a READ is complete when it is posted: then gets share doorbells, and those whose
    /// bins are cached form groups (hash_get_group.hpp).
    bool together = false;
  };

  /// The port serves other readers too, all of the same thread; it outlives this.
  HashGets(ReadPort& port, const HashTarget& target, Options options);
  HashGets(const HashGets&) = delete;
  HashGets& operator=(const HashGets&) = delete;

  /// Queues gets; other requests fail with `unsupported`. What they point to must live until their
  /// completion. Cost of a get: two waits, or one if its bin is cached and READs are ordered; one
  /// more for a pair of more than 1 KiB, two for one of more than 64 KiB.
  /// Completions have one of these errors, or none:
  ///   key_too_long     or empty
  ///   connection_lost  the pair has failed, or there will be no lease
  ///   not_found        the map was dropped
  ///   contended        it made HashGetLane::kAttemptsMax attempts, has too long a value, or
  ///                    would read a mebibyte besides: the rings serve it better
  ///   out_of_memory    this process has none for what it would read
  /// Errors: std::bad_alloc, and requests after the last that there was memory for are not taken.
  void submit(std::span<const Request> requests, Handler& handler);
  /// Processes what has arrived. Returns how many gets are left. Errors: exceptions of handlers,
  /// each of which was called once all the same.
  std::size_t poll();
  [[nodiscard]] std::size_t pending() const {
    return queue_.size() + others_.size() + (group_ ? group_->pending() : 0) + shared_.busy;
  }
  [[nodiscard]] LeaseGuard& lease() { return lease_; }
  /// Fails all pending gets: the host will not answer any more.
  void fail();
  [[nodiscard]] const HashGetCounts& counts() const { return shared_.counts; }
  /// Of its port.
  [[nodiscard]] const tree::WalkTraffic& traffic() const { return shared_.reads.port->traffic(); }

 private:
  void start();
  [[nodiscard]] bool has_next() const { return !others_.empty() || (!group_ && !queue_.empty()); }
  QueuedHashGet next();
  [[nodiscard]] static Code take(HashGetLane& lane, const QueuedHashGet& queued);

  HashTarget target_;
  LeaseGuard lease_;
  DirectoryBudget own_directories_;  // not used where it shares one
  KnownDirectories directories_;
  HashGetShared shared_;
  std::deque<HashGetLane> lanes_;
  std::optional<HashGetGroup> group_;
  std::deque<QueuedHashGet> queue_;
  std::vector<QueuedHashGet> others_;  // what a group has left to lanes
};

}  // namespace espalier::place
