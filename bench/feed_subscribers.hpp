// SPDX-License-Identifier: Apache-2.0
// Threads that follow the mapping feed of a map in this process, as devices do: every 50
// microseconds each reads the header and the next entries, and continues immediately while there
// are more. They run on the last cores, as writers run on the first ones.
//
// Thread: the one that made it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "bench/target.hpp"
#include "espalier/map.hpp"
#include "kinds/map/remote/feed_follower.hpp"
#include "kinds/map/write/map_core.hpp"

namespace espalier::bench {

class FeedSubscribers {
 public:
  /// Requires: the map is of this process, and outlives it. Errors: throws std::runtime_error.
  FeedSubscribers(const Map& map, std::uint32_t count);
  ~FeedSubscribers();
  FeedSubscribers(const FeedSubscribers&) = delete;
  FeedSubscribers& operator=(const FeedSubscribers&) = delete;

  /// Ends them when they have read all reported changes. Returns what all of them have read.
  FeedNews end();

 private:
  struct Reader {
    place::FeedCursor cursor;
    FeedNews news;
    std::vector<place::MappingChange> changes;
    place::FeedCursor::Landing landing;
    std::thread thread;
  };
  void read(Reader& reader) const;
  void follow(Reader& reader);

  tree::MapCore& core_;
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<Reader>> readers_;
};

}  // namespace espalier::bench
