// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/remote/feed_follower.hpp"

#include <algorithm>
#include <coroutine>
#include <utility>

namespace espalier::place {

FeedFollower::FeedFollower(ReadPort& port, MapCache& cache, FeedCursor cursor)
    : port_(port), cache_(cache), cursor_(std::move(cursor)), room_(std::make_shared<Room>()) {
  room_->lane.ready = &room_->ready;
  room_->lane.walk = std::noop_coroutine();
  room_->lane.aside = true;
}

FeedFollower::~FeedFollower() {
  if (room_->lane.waiting) port_.keep_until_done(room_->lane, room_);
}

void FeedFollower::poll(std::uint64_t now_ns) {
  if (ended_ || room_->lane.waiting) return;
  if (asked_) take();
  if (!ended_ && (at_once_ || now_ns >= next_ns_)) ask(now_ns);
}

// The header is requested first, but the cursor accepts both in any order.
void FeedFollower::ask(std::uint64_t now_ns) {
  next_ns_ = now_ns + pause_ns_;
  LaneReads& lane = room_->lane;
  FeedCursor::Landing& landing = room_->landing;
  port_.want(lane, cursor_.header_offset(), landing.header.data(), landing.header.size());
  port_.want(lane, cursor_.entries_offset(), landing.entries.data(), cursor_.entries_bytes());
  if (lane.failed) {
    lane.wanted.clear();
    lane.bytes = 0;
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
  const bool had_entries = cursor_.entries_bytes() != 0;
  switch (cursor_.take(room_->landing, changes_)) {
    case FeedCursor::Came::entries: break;
    case FeedCursor::Came::behind:
      ++counts_.behind;
      cache_.forget_places();
      break;
    case FeedCursor::Came::ended: ended_ = true; break;
  }
  const bool quiet = changes_.empty() && cursor_.waiting() == 0;
  pause_ns_ = quiet ? std::min(2 * pause_ns_, kQuietNs) : kEveryNs;
  // An entry that a writer has begun and not published is not requested without a pause.
  at_once_ = cursor_.waiting() != 0 && (!had_entries || !changes_.empty());
  counts_.changes += changes_.size();
  for (const MappingChange& change : changes_) {
    if (cache_.moved(change)) ++counts_.replaced;
  }
  changes_.clear();
}

}  // namespace espalier::place
