// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/remote/feed_cursor.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kinds/map/node/planted_tree_bugs.hpp"

namespace espalier::place {

Result<FeedCursor> FeedCursor::create(const wire::FeedPlace& place, const tree::MapView& map) {
  const bool fits = place.offset != 0 && place.offset % wire::kBlockBytes == 0 &&
                    map.holds(place.offset, wire::kFeedBytes) &&
                    place.entries == wire::kFeedEntries;
  if (!fits) return fail(Code::corrupt);
  return FeedCursor(place, map.id);
}

std::uint64_t FeedCursor::entries_offset() const {
  return offset_ + sizeof(wire::FeedHeader) + next_ % wire::kFeedEntries * sizeof(wire::FeedEntry);
}

std::uint32_t FeedCursor::entries_bytes() const {
  const std::uint64_t left = wire::kFeedEntries - next_ % wire::kFeedEntries;
  const std::uint64_t count = std::min({std::uint64_t{kAtOnce}, left, waiting()});
  return static_cast<std::uint32_t>(count * sizeof(wire::FeedEntry));
}

FeedCursor::Came FeedCursor::fall_behind() {
  began_ = true;
  next_ = tail_;
  return Came::behind;
}

FeedCursor::Came FeedCursor::take(const Landing& landing, std::vector<MappingChange>& changes) {
  wire::FeedHeader header;
  std::memcpy(&header, landing.header.data(), sizeof header);
  const bool ours = header.map_id == map_id_ && header.generation == generation_ &&
                    header.superseded != 0 && header.magic == wire::kFeedMagic &&
                    header.format == wire::kFeedFormat && header.entries == wire::kFeedEntries;
  if (!ours) return Came::ended;
  const std::uint32_t bytes = entries_bytes();  // as requested
  tail_ = std::max(header.tail, next_);
  const bool gap = std::exchange(gaps_, header.gaps) != header.gaps;
  if (!began_ || gap || tail_ - next_ > wire::kFeedEntries) return fall_behind();

  const std::size_t before = changes.size();
  for (std::uint32_t at = 0; at < bytes; at += sizeof(wire::FeedEntry)) {
    wire::FeedEntry entry;
    std::memcpy(&entry, landing.entries.data() + at, sizeof entry);
    if (entry.sequence > wire::feed_published(next_)) {
      changes.resize(before);  // the reloaded places are newer
      return fall_behind();
    }
    if (entry.sequence != wire::feed_published(next_)) break;
    if (entry.check != wire::feed_check(entry) && !tree::planted(tree::Bug::feed_check_ignored)) {
      break;
    }
    changes.push_back({entry.lid, {entry.ref}, entry.version});
    ++next_;
  }
  tail_ = std::max(tail_, next_);  // this header may be older than the last one read
  return Came::entries;
}

}  // namespace espalier::place
