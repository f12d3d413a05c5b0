// SPDX-License-Identifier: Apache-2.0
#include "bench/feed_subscribers.hpp"

#include <stdexcept>

#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "bench/probe.hpp"
#include "fabric/shared_copy.hpp"
#include "kinds/map/client/embedded_map.hpp"

namespace espalier::bench {

FeedSubscribers::FeedSubscribers(const Map& map, std::uint32_t count)
    : core_(client::EmbeddedMap::of(map).core()) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto place = core_.table.feed().add_follower();
    if (!place) throw std::runtime_error("cannot follow the map: " + message(place.error()));
    const auto cursor = place::FeedCursor::create(*place, core_);
    if (!cursor) throw std::runtime_error("the map's feed cannot lie there");
    readers_.push_back(std::make_unique<Reader>(Reader{*cursor, {}, {}, {}, {}}));
    read(*readers_.back());
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    readers_[i]->thread = std::thread([this, i] {
      pin_beside(i);
      follow(*readers_[i]);
    });
  }
}

FeedSubscribers::~FeedSubscribers() { end(); }

FeedNews FeedSubscribers::end() {
  stop_.store(true, std::memory_order_relaxed);
  FeedNews all;
  for (const auto& reader : readers_) {
    if (reader->thread.joinable()) {
      reader->thread.join();
      core_.table.feed().remove_follower();
    }
    all.changes += reader->news.changes;
    all.behind += reader->news.behind;
  }
  return all;
}

// Reads all that is there, a piece at a time.
void FeedSubscribers::read(Reader& reader) const {
  do {
    const place::FeedCursor& cursor = reader.cursor;
    fabric::copy_from_shared(reader.landing.header.data(), core_.at(cursor.header_offset()),
                             reader.landing.header.size());
    fabric::copy_from_shared(reader.landing.entries.data(), core_.at(cursor.entries_offset()),
                             cursor.entries_bytes());
    const auto came = reader.cursor.take(reader.landing, reader.changes);
    if (came == place::FeedCursor::Came::behind) ++reader.news.behind;
    reader.news.changes += reader.changes.size();
    reader.changes.clear();
  } while (reader.cursor.waiting() != 0);
}

// Without sleeping: a timer on the other core may cost writers more than the whole feed.
void FeedSubscribers::follow(Reader& reader) {
  std::uint64_t next_ns = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    const std::uint64_t now = base::monotonic_ns();
    if (now < next_ns) {
      base::spin_pause();
      continue;
    }
    next_ns = now + place::FeedFollower::kEveryNs;
    read(reader);
  }
  read(reader);
}

}  // namespace espalier::bench
