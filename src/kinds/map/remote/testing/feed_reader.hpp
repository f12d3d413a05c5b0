// SPDX-License-Identifier: Apache-2.0
// For tests: a reader's copy of the page table, kept by a map's feed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fabric/shared_copy.hpp"
#include "kinds/map/remote/feed_cursor.hpp"
#include "kinds/map/write/page_table.hpp"

namespace espalier::place {

class FeedReader {
 public:
  /// Follows LIDs of this table, which it looks up when it is behind.
  FeedReader(const tree::PageTable& table, const std::byte* memory, FeedCursor cursor,
             std::vector<wire::Lid> lids)
      : table_(table), memory_(memory), cursor_(std::move(cursor)), lids_(std::move(lids)) {}

  /// Reads once. Returns the outcome.
  FeedCursor::Came poll() {
    bring();
    return take();
  }
  void bring() {
    fabric::copy_from_shared(landing_.header.data(), memory_ + cursor_.header_offset(),
                             landing_.header.size());
    fabric::copy_from_shared(landing_.entries.data(), memory_ + cursor_.entries_offset(),
                             cursor_.entries_bytes());
  }
  /// Takes what was read.
  FeedCursor::Came take() {
    std::vector<MappingChange> changes;
    const auto came = cursor_.take(landing_, changes);
    if (came == FeedCursor::Came::behind) {
      ++behind_;
      for (const wire::Lid lid : lids_) places_[lid] = table_.get(lid);
    }
    for (const MappingChange& change : changes) {
      places_[change.lid] = change.ref;
      if (change.version < versions_[change.lid] || change.ref.bits >> 36 != change.version) {
        ++wrong_;
      }
      versions_[change.lid] = change.version;
    }
    taken_ += changes.size();
    return came;
  }
  /// Polls until no entry waits.
  void catch_up() {
    do {
      poll();
    } while (cursor_.waiting() != 0);
  }

  [[nodiscard]] wire::Ref place(wire::Lid lid) const {
    const auto known = places_.find(lid);
    return known == places_.end() ? wire::Ref{} : known->second;
  }
  [[nodiscard]] FeedCursor::Landing& landing() { return landing_; }
  [[nodiscard]] const FeedCursor& cursor() const { return cursor_; }
  [[nodiscard]] std::uint64_t behind() const { return behind_; }
  [[nodiscard]] std::uint64_t taken() const { return taken_; }
  /// Changes that went back in time for their LID, or mixed words of two entries.
  [[nodiscard]] std::uint64_t wrong() const { return wrong_; }

 private:
  const tree::PageTable& table_;
  const std::byte* memory_;
  FeedCursor cursor_;
  std::vector<wire::Lid> lids_;
  FeedCursor::Landing landing_;
  std::unordered_map<wire::Lid, wire::Ref> places_;
  std::unordered_map<wire::Lid, std::uint64_t> versions_;
  std::uint64_t behind_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t wrong_ = 0;
};

}  // namespace espalier::place
