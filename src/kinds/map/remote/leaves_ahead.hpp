// SPDX-License-Identifier: Apache-2.0
// Leaves that one scan from elsewhere will come to, brought before it does
// (kinds/map/walk/ahead_access.hpp): the node above them, as it is remembered, says which.
//
//   no place --(a word of the page table)--> placed --(one doorbell for several)--> come --> proved
//                                              |                                      |
//                                              +------- the scan takes it ------------+
//
// What comes stays good for this scan: it was read after the scan's read version, under its lease,
// and the buffer still had its generation when its last byte had come. So its items up to that
// version are all there, whatever becomes of the leaf. The next scan begins with none.
//
// Bounded: kMost leaves and kBytesMax bytes on their way at a time, and memory for twice as many,
// which is taken when scans first need it.
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

/// Whether these bytes, which are the header of a buffer, say that it is still this one.
[[nodiscard]] bool is_still(const std::byte* header, wire::Ref ref, std::uint32_t map_id);
[[nodiscard]] inline bool is_still(const Landing& header, wire::Ref ref, std::uint32_t map_id) {
  return is_still(reinterpret_cast<const std::byte*>(header.words.get() + 1), ref, map_id);
}

class LeavesAhead {
 public:
  /// Leaves in one doorbell, at most; and of how many it is asked where they are.
  static constexpr std::uint32_t kMost = 8;
  static constexpr std::uint32_t kPlanned = 2 * kMost;
  static constexpr std::uint32_t kBytesMax = 64 << 10;

  /// Both outlive it. Requires: the reader remembers nodes.
  LeavesAhead(ReaderState& state, const tree::MapView& view) : state_(state), view_(view) {}

  /// Forgets all: another scan begins, or this one anew.
  void clear();
  /// Adds READs of up to `leaves` leaves that follow, or of where they are, to what is wanted.
  void want(LaneReads& reads, tree::Cursor& cursor, const tree::SearchKey* bound,
            std::uint32_t leaves);
  /// The same of the headers of those that have come, or come before these where READs keep their
  /// order.
  void want_proofs(LaneReads& reads);
  /// What was wanted has come, or failed.
  void come(bool failed);

  struct Taken {
    wire::Ref ref{};      // none: nothing is known
    bool here = false;    // its image is
    bool proved = false;  // and needs no READ to be confirmed
  };
  /// The scan goes on to this leaf. If it is here, its image is exchanged for `image`.
  Taken take(wire::Lid lid, Landing& image);
  [[nodiscard]] bool seeks_above(tree::Cursor& cursor);

 private:
  enum class Stage : std::uint8_t { unknown, looked_up, placed, coming, come, proving, proved };
  struct Leaf {
    wire::Lid lid = 0;
    wire::Ref ref{};
    Stage stage = Stage::unknown;
    Landing image;
    Landing header;  // once more, after the last byte
    Landing word;    // of the page table
  };
  /// What is missing of the node above, in order to know more.
  struct Piece {
    wire::Ref ref{};
    std::uint32_t begin = 0;
    std::uint32_t bytes = 0;  // 0: nothing is on its way
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
  std::vector<Leaf> leaves_;  // the first `count_` of them, in the order of the scan
  std::size_t count_ = 0;
  Piece piece_;
  bool missed_ = false;  // the leaf that the scan went on to last was not among them
  bool sought_ = false;  // the scan went down for the node above,
  bool blind_ = false;   // and that was not kept: there is no room for it
};

}  // namespace espalier::place
