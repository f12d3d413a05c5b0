// SPDX-License-Identifier: Apache-2.0
// A client that reads a hash map alone: gets by one-sided READs, while the host writes and knows
// nothing of it but a lease.
//
// It makes no progress by itself and keeps no time: its owner polls it, and carries its questions
// about the lease to the host (see LeaseGuard::due).
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
    /// Buckets that it remembers, with other maps of the same region; outlives it. Null: none.
    BinCache* cache = nullptr;
    /// Records likewise. Null: none, and each is read. Requires: `cache`, if there is one.
    RecordCache* records = nullptr;
    /// Of directories that it remembers, at most. 0: none, and a get waits twice more.
    std::uint64_t directory_bytes = std::uint64_t{4} << 20;
    /// In place of that, what it has for them with other maps of the same region; outlives it.
    DirectoryBudget* directories = nullptr;
    /// A longer value is not brought: its get ends with `contended`.
    std::uint64_t value_bytes_max = hash::kValueBytesMax;
    /// Whether a READ is done when it has been posted: then gets go together, and those whose bins
    /// are remembered in groups (hash_get_group.hpp).
    bool together = false;
  };

  /// The port serves other readers too, all of the same thread; it outlives this.
  HashGets(ReadPort& port, const HashTarget& target, Options options);
  HashGets(const HashGets&) = delete;
  HashGets& operator=(const HashGets&) = delete;

  /// Queues gets; other requests are refused with `unsupported`. What they point to must live until
  /// their completion. Cost of a get: two waits, or one where its bin is remembered and READs keep
  /// their order; one more for a pair of more than 1 KiB, two for one of more than 64 KiB.
  /// Answers come with:
  ///   key_too_long     or empty
  ///   connection_lost  the pair has failed, or there will be no lease
  ///   not_found        the map was dropped
  ///   contended        it met changes HashGetLane::kAttemptsMax times, has a value that is too
  ///                    long, or would have a mebibyte brought besides: others answer it better
  ///   out_of_memory    this process has none for what it would read
  /// Errors: std::bad_alloc, and those behind the last that there was memory for are not taken.
  void submit(std::span<const Request> requests, Handler& handler);
  /// Takes what has come, and goes on. Returns how many gets are left. Errors: what handlers throw,
  /// who are told once all the same.
  std::size_t poll();
  [[nodiscard]] std::size_t pending() const {
    return queue_.size() + others_.size() + (group_ ? group_->pending() : 0) + shared_.busy;
  }
  [[nodiscard]] LeaseGuard& lease() { return lease_; }
  /// Ends all gets that wait: there will be no answer from the host any more.
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
