// SPDX-License-Identifier: Apache-2.0
#include "bench/feed_subscribers.hpp"

#include <chrono>
#include <stdexcept>

#include "client/embedded.hpp"
#include "fabric/shared_copy.hpp"

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
  for (const auto& reader : readers_) {
    reader->thread = std::thread([this, &of = *reader] { follow(of); });
  }
}

FeedSubscribers::~FeedSubscribers() { end(); }

FeedNews FeedSubscribers::end() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
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

// All that is there, a piece at a time.
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

void FeedSubscribers::follow(Reader& reader) {
  std::unique_lock lock(mutex_);
  const std::chrono::nanoseconds pause(place::FeedFollower::kEveryNs);
  while (!changed_.wait_for(lock, pause, [this] { return stop_; })) {
    lock.unlock();
    read(reader);
    lock.lock();
  }
  lock.unlock();
  read(reader);
}

}  // namespace espalier::bench
