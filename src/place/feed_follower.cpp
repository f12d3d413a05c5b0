// SPDX-License-Identifier: Apache-2.0
#include "place/feed_follower.hpp"

#include <algorithm>
#include <coroutine>
#include <utility>

namespace espalier::place {

FeedFollower::FeedFollower(ReadPort& port, MapCache& cache, FeedCursor cursor)
    : port_(port), cache_(cache), cursor_(std::move(cursor)), room_(std::make_shared<Room>()) {
  room_->lane.ready = &room_->ready;
  room_->lane.walk = std::noop_coroutine();
}

FeedFollower::~FeedFollower() {
  if (room_->lane.waiting) port_.keep_until_done(room_->lane, room_);
}

void FeedFollower::poll(std::uint64_t now_ns) {
  if (ended_ || room_->lane.waiting) return;
  if (asked_) take();
  if (!ended_ && (cursor_.waiting() != 0 || now_ns >= next_ns_)) ask(now_ns);
}

// The header is asked for first; in which order both are read, the cursor does not care.
void FeedFollower::ask(std::uint64_t now_ns) {
  next_ns_ = now_ns + pause_ns_;
  LaneReads& lane = room_->lane;
  FeedCursor::Landing& landing = room_->landing;
  port_.want(lane, cursor_.header_offset(), landing.header.data(), landing.header.size());
  port_.want(lane, cursor_.entries_offset(), landing.entries.data(), cursor_.entries_bytes());
  if (lane.failed) {
    lane.wanted.clear();
    ended_ = true;
    return;
  }
  asked_ = true;
  ++counts_.reads;
  port_.send(lane);
}

void FeedFollower::take() {
  asked_ = false;
  static_cast<void>(room_->ready.pop());
  if (room_->lane.failed) {
    ended_ = true;
    return;
  }
  switch (cursor_.take(room_->landing, changes_)) {
    case FeedCursor::Came::entries: break;
    case FeedCursor::Came::behind:
      ++counts_.behind;
      cache_.forget_places();
      break;
    case FeedCursor::Came::ended: ended_ = true; break;
  }
  pause_ns_ = changes_.empty() ? std::min(2 * pause_ns_, kQuietNs) : kEveryNs;
  counts_.changes += changes_.size();
  for (const MappingChange& change : changes_) {
    if (cache_.moved(change)) ++counts_.replaced;
  }
  changes_.clear();
}

}  // namespace espalier::place
