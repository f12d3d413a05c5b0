// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/remote/leaves_ahead.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "base/atomic_bytes.hpp"
#include "kinds/map/remote/one_sided_access.hpp"

namespace espalier::place {

bool is_still(const std::byte* header, wire::Ref ref, std::uint32_t map_id) {
  wire::BufferHeader read;
  std::memcpy(&read, header, sizeof read);
  const bool ours = read.map_id == map_id || tree::planted(tree::Bug::skip_map_check);
  return ours && read.superseded != 0 &&
         (read.generation & wire::kGenerationMask) == ref.generation();
}

std::uint32_t LeavesAhead::most() const {
  const std::uint32_t by_bytes = kBytesMax / view_.geometry.node_bytes;
  return std::min({kMost, std::max(by_bytes, 1u), state_.leaves_ahead});
}

void LeavesAhead::clear() {
  count_ = 0;
  piece_.bytes = 0;
  missed_ = sought_ = blind_ = false;
}

// --- requests ------------------------------------------------------------------------------------

void LeavesAhead::want(LaneReads& reads, tree::Cursor& cursor, const tree::SearchKey* bound,
                       std::uint32_t leaves) {
  if (most() == 0) return;
  if (count_ < kPlanned) plan(reads, cursor, bound, std::min(leaves, kPlanned));
  const std::size_t brought = std::min<std::size_t>({count_, most(), leaves});
  for (std::size_t i = 0; i < count_; ++i) {
    Leaf& leaf = leaves_[i];
    if (leaf.stage == Stage::unknown) look_up(reads, leaf);
    if (leaf.stage == Stage::placed && i < brought) bring(reads, leaf);
  }
}

void LeavesAhead::plan(LaneReads& reads, tree::Cursor& cursor, const tree::SearchKey* bound,
                       std::uint32_t leaves) {
  std::array<wire::Lid, kPlanned> lids;
  const auto found = state_.cache->neighbours(cursor, bound, std::span(lids).first(leaves));
  blind_ = !found.known && (blind_ || sought_);
  sought_ = false;
  for (const wire::Lid lid : std::span(lids).first(found.count)) add(lid);
  if (found.missing_bytes == 0) return;
  piece_.ref = found.above;
  piece_.begin = found.missing_begin;
  piece_.bytes = found.missing_bytes;
  state_.port->want(reads, piece_.ref.offset() + piece_.begin, piece_.landing.room(piece_.bytes),
                    piece_.bytes);
}

void LeavesAhead::add(wire::Lid lid) {
  const auto known = std::span(leaves_).first(count_);
  if (std::ranges::find(known, lid, &Leaf::lid) != known.end() || count_ == kPlanned) return;
  if (count_ == leaves_.size()) leaves_.emplace_back();
  Leaf& leaf = leaves_[count_++];
  leaf.lid = lid;
  leaf.ref = state_.cache->place(lid);
  leaf.stage = leaf.ref && view_.holds_node(leaf.ref) ? Stage::placed : Stage::unknown;
}

// If the table page is unknown, the scan looks it up when it reaches the leaf.
void LeavesAhead::look_up(LaneReads& reads, Leaf& leaf) {
  const std::uint64_t named = view_.directory_entry_offset(leaf.lid);
  const std::uint64_t page =
      named == 0 ? 0 : state_.table_pages[(named - view_.directory_offset) / sizeof(wire::Ref)];
  if (page == 0) return;
  state_.port->want(reads, tree::MapView::entry_in_page(page, leaf.lid),
                    leaf.word.room(sizeof(wire::Ref)), sizeof(wire::Ref));
  leaf.stage = Stage::looked_up;
}

void LeavesAhead::bring(LaneReads& reads, Leaf& leaf) {
  const std::uint32_t bytes = view_.geometry.node_bytes;
  state_.port->want(reads, leaf.ref.offset(), leaf.image.room(bytes), bytes);
  leaf.stage = Stage::coming;
  ++state_.ahead.asked;
}

void LeavesAhead::want_proofs(LaneReads& reads) {
  for (Leaf& leaf : std::span(leaves_).first(count_)) {
    const bool in_order = state_.port->reads_in_order() && leaf.stage == Stage::coming;
    if (leaf.stage != Stage::come && !in_order) continue;
    state_.port->want(reads, leaf.ref.offset(), leaf.header.room(sizeof(wire::BufferHeader)),
                      sizeof(wire::BufferHeader));
    leaf.stage = Stage::proving;
  }
}

// --- arrivals ------------------------------------------------------------------------------------

void LeavesAhead::come(bool failed) {
  if (failed) return clear();
  for (Leaf& leaf : std::span(leaves_).first(count_)) {
    switch (leaf.stage) {
      case Stage::looked_up: take_word(leaf); break;
      case Stage::coming: leaf.stage = Stage::come; break;
      case Stage::proving: check(leaf); break;
      default: break;
    }
  }
  if (piece_.bytes == 0) return;
  const std::byte* const bytes = piece_.landing.room(piece_.bytes);
  state_.cache->keep_piece(piece_.ref, piece_.begin, {bytes, std::exchange(piece_.bytes, 0)});
}

void LeavesAhead::take_word(Leaf& leaf) {
  leaf.ref.bits = base::load_shared<std::uint64_t>(leaf.word.room(sizeof(wire::Ref)),
                                                   std::memory_order_acquire);
  const bool there = leaf.ref && view_.holds_node(leaf.ref);
  if (there) state_.cache->keep_place(leaf.lid, leaf.ref);
  leaf.stage = there ? Stage::placed : Stage::unknown;
}

// Discards a leaf whose buffer was reused.
void LeavesAhead::check(Leaf& leaf) {
  const bool still =
      is_still(leaf.header, leaf.ref, view_.id) || tree::planted(tree::Bug::ahead_not_confirmed);
  leaf.stage = still ? Stage::proved : Stage::unknown;
  if (!still) leaf.ref = {};
}

// --- use by the scan -----------------------------------------------------------------------------

LeavesAhead::Taken LeavesAhead::take(wire::Lid lid, Landing& image) {
  const auto known = std::span(leaves_).first(count_);
  const auto at = std::ranges::find(known, lid, &Leaf::lid);
  if (at == known.end()) {
    // A split may have inserted one leaf. If a second leaf is unknown, the node above is stale.
    if (count_ != 0 && std::exchange(missed_, true)) clear();
    return {};
  }
  missed_ = false;
  Leaf& leaf = *at;
  Taken taken{leaf.ref, leaf.stage == Stage::come || leaf.stage == Stage::proved,
              leaf.stage == Stage::proved};
  if (leaf.stage == Stage::unknown) taken.ref = {};
  if (taken.here) {
    std::swap(image, leaf.image);
    ++state_.ahead.taken;
  }
  const auto passed = std::distance(known.begin(), at) + 1;
  std::rotate(leaves_.begin(), leaves_.begin() + passed,
              leaves_.begin() + static_cast<std::ptrdiff_t>(count_));
  count_ -= static_cast<std::size_t>(passed);
  return taken;
}

bool LeavesAhead::seeks_above(tree::Cursor& cursor) {
  if (most() == 0 || blind_) return false;
  sought_ = !state_.cache->neighbours(cursor, nullptr, {}).known;
  return sought_;
}

}  // namespace espalier::place
