// SPDX-License-Identifier: Apache-2.0
// Keeps what a reader remembers of a map up to date by the map's mapping feed: reads its header now
// and then, and what waits behind it, beside the READs of walks, and tells the cache.
//
// It is for freshness alone. Walks ask the leaf that they come to, confirm it, and hold a lease,
// whatever the cache said; so changes that come late, or never, cost time.
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
    std::uint64_t changes = 0;   // that were told
    std::uint64_t replaced = 0;  // places that were known, and are others now
    std::uint64_t behind = 0;    // times that all places were forgotten
  };
  /// Between two READs of the feed, unless more of it waits: at least, and, when nothing was told
  /// for long, at most.
  static constexpr std::uint64_t kEveryNs = 50'000;
  static constexpr std::uint64_t kQuietNs = 32 * kEveryNs;

  /// `port` and `cache` outlive it.
  FeedFollower(ReadPort& port, MapCache& cache, FeedCursor cursor);
  /// What is on its way when it ends goes nowhere.
  ~FeedFollower();
  FeedFollower(const FeedFollower&) = delete;
  FeedFollower& operator=(const FeedFollower&) = delete;

  /// Takes what has come, and asks for more when it is time.
  void poll(std::uint64_t now_ns);

  [[nodiscard]] const Counts& counts() const { return counts_; }
  /// There is no such feed any more, or nothing can be read.
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  // What READs write to; the port keeps it while they are under way.
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
  std::vector<MappingChange> changes_;  // empty; kept for its memory
  bool asked_ = false;
  bool at_once_ = false;  // more waits, and may be read
  bool ended_ = false;
  std::uint64_t next_ns_ = 0;
  std::uint64_t pause_ns_ = kEveryNs;
  Counts counts_;
};

}  // namespace espalier::place
