// SPDX-License-Identifier: Apache-2.0
// Read-ahead of the leaves that one remote scan will visit (kinds/map/walk/ahead_access.hpp): the
// cached node above them says which.
//
//   no place --(a word of the page table)--> placed --(one doorbell for several)--> come --> proved
//                                              |                                      |
//                                              +------- the scan takes it ------------+
//
// A leaf that was read stays valid for this scan: it was read after the scan's read version was
// taken, under the scan's lease, and its buffer still had the same generation when its last byte
// had arrived. So it has all items up to that version, whatever happens to the leaf later. The next
// scan starts with none.
//
// Bounded: kMost leaves and kBytesMax bytes in flight at a time, and memory for twice as many,
// allocated when scans first need it.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kinds/map/remote/map_cache.hpp"
#include "reach/batch_header.hpp"
#include "reach/read_port.hpp"

namespace espalier::place {

struct ReaderState;

/// Whether these bytes are the header of the buffer that `ref` names.
[[nodiscard]] bool is_still(const std::byte* header, wire::Ref ref, std::uint32_t map_id);
[[nodiscard]] inline bool is_still(const Landing& header, wire::Ref ref, std::uint32_t map_id) {
  return is_still(reinterpret_cast<const std::byte*>(header.words.get() + 1), ref, map_id);
}

class LeavesAhead {
 public:
  /// Maximum leaves per doorbell, and maximum leaves whose places are looked up ahead.
  static constexpr std::uint32_t kMost = 8;
  static constexpr std::uint32_t kPlanned = 2 * kMost;
  static constexpr std::uint32_t kBytesMax = 64 << 10;

  /// Both outlive it. Requires: the reader caches nodes.
  LeavesAhead(ReaderState& state, const tree::MapView& view) : state_(state), view_(view) {}

  /// Drops everything: another scan begins, or this one restarts.
  void clear();
  /// Adds READs of up to `leaves` following leaves, or of their places, to the pending requests.
  void want(LaneReads& reads, tree::Cursor& cursor, const tree::SearchKey* bound,
            std::uint32_t leaves);
  /// Adds READs of the headers of leaves that have arrived, or that arrive before these READs where
  /// READs keep their order.
  void want_proofs(LaneReads& reads);
  /// The requested bytes have arrived, or failed.
  void come(bool failed);

  struct Taken {
    wire::Ref ref{};      // none: unknown leaf
    bool here = false;    // its image was read
    bool proved = false;  // and confirmed, without a further READ
  };
  /// The scan continues at this leaf. If it was read, exchanges its image for `image`.
  Taken take(wire::Lid lid, Landing& image);
  [[nodiscard]] bool seeks_above(tree::Cursor& cursor);

 private:
  enum class Stage : std::uint8_t { unknown, looked_up, placed, coming, come, proving, proved };
  struct Leaf {
    wire::Lid lid = 0;
    wire::Ref ref{};
    Stage stage = Stage::unknown;
    Landing image;
    Landing header;  // read once more, after the last byte
    Landing word;    // of the page table
  };
  /// The missing part of the node above.
  struct Piece {
    wire::Ref ref{};
    std::uint32_t begin = 0;
    std::uint32_t bytes = 0;  // 0: none in flight
    Landing landing;
  };

  [[nodiscard]] std::uint32_t most() const;
  void plan(LaneReads& reads, tree::Cursor& cursor, const tree::SearchKey* bound,
            std::uint32_t leaves);
  void add(wire::Lid lid);
  void look_up(LaneReads& reads, Leaf& leaf);
  void bring(LaneReads& reads, Leaf& leaf);
  void take_word(Leaf& leaf);
  void check(Leaf& leaf);

  ReaderState& state_;
  const tree::MapView& view_;
  std::vector<Leaf> leaves_;  // the first `count_` are used, in the order of the scan
  std::size_t count_ = 0;
  Piece piece_;
  bool missed_ = false;  // the scan's last leaf was not among them
  bool sought_ = false;  // the scan descended to cache the node above,
  bool blind_ = false;   // but the cache had no room for it
};

}  // namespace espalier::place
