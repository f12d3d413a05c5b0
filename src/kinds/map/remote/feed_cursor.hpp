// SPDX-License-Identifier: Apache-2.0
// A reader's end of a map's mapping feed (kinds/map/format/mapping_feed.hpp): says which bytes of
// the ring are to be read next, and what those that came tell.
//
// Only entries below the tail that was read last are asked for: those ahead of it are what writers
// write next, and a line that a reader has just read costs the next writer a cache miss. So a
// reader that knows of none reads the header alone.
//
// Bytes may be torn, late, of two moments, or forged. An entry counts if it has the number that is
// expected and its check is right; else it is awaited. What an entry says is a hint, so that one
// that is wrong although it counted costs time.
//
// Behind is who
// - begins;
// - finds the tail further away than the ring is long, or a later number in an entry's place;
// - finds another number of gaps: the feed was off, or entries were left out.
// It goes on at the tail that it read last, and what it knew of places is to be read anew, after
// that tail: the page table has each change whose entry stands before it.
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

/// A node has moved.
struct MappingChange {
  wire::Lid lid = 0;
  wire::Ref ref{};  // where it is now; none: its LID was given up
  std::uint64_t version = 0;
};

class FeedCursor {
 public:
  /// Entries that are read at once, at most.
  static constexpr std::uint32_t kAtOnce = 32;
  /// Room for a header and for as many entries, each aligned to 8.
  struct Landing {
    alignas(8) std::array<std::byte, sizeof(wire::FeedHeader)> header{};
    alignas(8) std::array<std::byte, kAtOnce * sizeof(wire::FeedEntry)> entries{};
  };

  /// Errors: corrupt (a feed cannot lie there, or is of another length).
  static Result<FeedCursor> create(const wire::FeedPlace& place, const tree::MapView& map);

  /// Where the header lies in the region.
  [[nodiscard]] std::uint64_t header_offset() const { return offset_; }
  /// Where the next entries lie, and how many bytes of them are to be read: those that are known to
  /// wait, none beyond the ring's end; 0: the header alone.
  [[nodiscard]] std::uint64_t entries_offset() const;
  [[nodiscard]] std::uint32_t entries_bytes() const;

  enum class Came : std::uint8_t {
    entries,  // perhaps none
    behind,   // all places are to be read anew; the next entries follow what is read from now on
    ended,    // there is no such feed any more
  };
  /// Takes what was read, whichever of both came first, and adds the changes to `changes`; of a
  /// reader who is behind none.
  Came take(const Landing& landing, std::vector<MappingChange>& changes);

  /// Entries that were there when the header was read, and were not taken.
  [[nodiscard]] std::uint64_t waiting() const { return tail_ - next_; }

 private:
  FeedCursor(const wire::FeedPlace& place, std::uint32_t map_id)
      : offset_(place.offset), generation_(place.generation), map_id_(map_id) {}
  Came fall_behind();

  std::uint64_t offset_;
  std::uint32_t generation_;
  std::uint32_t map_id_;
  bool began_ = false;
  std::uint64_t next_ = 0;  // the number of the next entry
  std::uint64_t tail_ = 0;  // as it was read last
  std::uint64_t gaps_ = 0;
};

}  // namespace espalier::place
