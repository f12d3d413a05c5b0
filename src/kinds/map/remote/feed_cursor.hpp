// SPDX-License-Identifier: Apache-2.0
// A reader's position in a map's mapping feed (kinds/map/format/mapping_feed.hpp): says which bytes
// of the ring to read next, and parses them.
//
// Only entries below the last known tail are read: writers write those ahead of it next, and a line
// that a reader has just read costs the next writer a cache miss. So a reader that knows of no
// entries reads the header alone.
//
// Bytes may be torn, late, of different moments, or forged. An entry is accepted if its number is
// the expected one and its checksum matches; else the reader waits for it. Entries are hints: a
// wrong one that was accepted costs time only.
//
// A reader is behind if it
// - has just begun;
// - finds the tail further ahead than the ring is long, or a later number in an entry's slot;
// - finds another number of gaps: the feed was off, or entries were left out.
// It then continues at the last known tail and must reload all places after reading that tail: the
// page table has each change whose entry lies below it.
//
// Thread: one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "espalier/error.hpp"
#include "kinds/map/format/mapping_feed.hpp"
#include "kinds/map/walk/map_view.hpp"

namespace espalier::place {

/// A page-table change.
struct MappingChange {
  wire::Lid lid = 0;
  wire::Ref ref{};  // its current buffer; none: its LID was freed
  std::uint64_t version = 0;
};

class FeedCursor {
 public:
  /// Maximum entries per read.
  static constexpr std::uint32_t kAtOnce = 32;
  /// Room for a header and for that many entries, each aligned to 8.
  struct Landing {
    alignas(8) std::array<std::byte, sizeof(wire::FeedHeader)> header{};
    alignas(8) std::array<std::byte, kAtOnce * sizeof(wire::FeedEntry)> entries{};
  };

  /// Errors: corrupt (the place is invalid, or the ring has another length).
  static Result<FeedCursor> create(const wire::FeedPlace& place, const tree::MapView& map);

  /// Region offset of the header.
  [[nodiscard]] std::uint64_t header_offset() const { return offset_; }
  /// Region offset and size of the next entries to be read: known to be published, none beyond the
  /// ring's end. 0 bytes: read the header alone.
  [[nodiscard]] std::uint64_t entries_offset() const;
  [[nodiscard]] std::uint32_t entries_bytes() const;

  enum class Came : std::uint8_t {
    entries,  // perhaps none
    behind,   // reload all places from now on; the next entries follow
    ended,    // the feed no longer exists
  };
  /// Parses header and entries, read in any order, and appends the changes to `changes`; none if
  /// the reader is behind.
  Came take(const Landing& landing, std::vector<MappingChange>& changes);

  /// Entries below the last known tail that were not taken.
  [[nodiscard]] std::uint64_t waiting() const { return tail_ - next_; }

 private:
  FeedCursor(const wire::FeedPlace& place, std::uint32_t map_id)
      : offset_(place.offset), generation_(place.generation), map_id_(map_id) {}
  Came fall_behind();

  std::uint64_t offset_;
  std::uint32_t generation_;
  std::uint32_t map_id_;
  bool began_ = false;
  std::uint64_t next_ = 0;  // number of the next entry
  std::uint64_t tail_ = 0;  // the last known tail
  std::uint64_t gaps_ = 0;
};

}  // namespace espalier::place
