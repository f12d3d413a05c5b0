// SPDX-License-Identifier: Apache-2.0
// Applies a map's mapping feed to a reader's cache: periodically READs the feed's header and new
// entries, beside the READs of walks.
//
// Affects freshness only. Walks check and confirm their leaf and hold a lease whatever the cache
// contains; so late or missing changes cost time.
//
// Thread: that of its port.
#pragma once

#include <cstdint>
#include <memory>

#include "base/task.hpp"
#include "kinds/map/remote/feed_cursor.hpp"
#include "kinds/map/remote/map_cache.hpp"
#include "reach/read_port.hpp"

namespace espalier::place {

class FeedFollower {
 public:
  struct Counts {
    std::uint64_t reads = 0;     // round trips
    std::uint64_t changes = 0;   // changes received
    std::uint64_t replaced = 0;  // cached places that were replaced
    std::uint64_t behind = 0;    // times that all places were dropped
  };
  /// Interval between READs of the feed, unless more entries wait: minimum, and maximum after a
  /// long time without changes.
  static constexpr std::uint64_t kEveryNs = 50'000;
  static constexpr std::uint64_t kQuietNs = 32 * kEveryNs;

  /// `port` and `cache` outlive it.
  FeedFollower(ReadPort& port, MapCache& cache, FeedCursor cursor);
  /// Discards READs in flight.
  ~FeedFollower();
  FeedFollower(const FeedFollower&) = delete;
  FeedFollower& operator=(const FeedFollower&) = delete;

  /// Takes what has arrived, and issues the next READ when it is due.
  void poll(std::uint64_t now_ns);

  [[nodiscard]] const Counts& counts() const { return counts_; }
  /// The feed no longer exists, or the port has failed.
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  // Buffers that READs write to; the port keeps them alive while READs are in flight.
  struct Room {
    base::ReadyQueue ready{1};
    LaneReads lane;
    FeedCursor::Landing landing;
  };
  void take();
  void ask(std::uint64_t now_ns);

  ReadPort& port_;
  MapCache& cache_;
  FeedCursor cursor_;
  std::shared_ptr<Room> room_;
  std::vector<MappingChange> changes_;  // empty between polls; kept for its capacity
  bool asked_ = false;
  bool at_once_ = false;  // more entries wait: read without a pause
  bool ended_ = false;
  std::uint64_t next_ns_ = 0;
  std::uint64_t pause_ns_ = kEveryNs;
  Counts counts_;
};

}  // namespace espalier::place
