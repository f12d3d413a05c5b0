// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/memo_planner.hpp"

#include <bit>

#include "base/assert.hpp"
#include "channel/draw_seed.hpp"
#include "kinds/embedding/planted_embedding_bugs.hpp"

namespace espalier::embedding {

std::uint32_t planner_multiplier() {
  static const std::uint32_t drawn = static_cast<std::uint32_t>(client::draw_seed()) | 1;
  return drawn;
}

// All of them before the first is looked at again: their lines come together.
std::optional<std::uint32_t> MemoPlanner::find_places(std::span<const std::uint32_t> ids) {
  for (std::uint32_t i = 0; i < ids.size(); ++i) {
    std::uint32_t row = ids[i];
    std::uint32_t place = kNoPlace;
    if (use_.renumbered) {
      if ((row & kPlaceBit) != 0) {
        place = row & ~kPlaceBit;
        if (!memo_.numbering().is_place(place)) return i;
        row = kNoPlace;  // it is looked up only if it is read
      }
    } else if (use_.sums && row < rows_) {
      place = memo_.place_of(row);
    }
    if (place == kNoPlace && row >= rows_) return i;
    places_[i] = place;
    rows_of_ids_[i] = row;
  }
  return std::nullopt;
}

void MemoPlanner::add_to_group(std::uint32_t place, std::uint32_t id) {
  const std::uint32_t number = group_of_place(place);
  const std::uint32_t bit = bit_of_place(place);
  std::uint32_t slot = number * multiplier_ >> (32 - std::bit_width(kSlots - 1));
  for (;; slot = (slot + 1) % kSlots) {
    ++probes_;
    const std::uint32_t at = slots_[slot];
    if (at >= group_count_ || groups_[at].slot != slot) break;
    if (groups_[at].number != number) continue;
    if ((groups_[at].mask & bit) == 0) {
      groups_[at].mask |= bit;
    } else if (!planted(Bug::repeated_id_once)) {
      alone_[alone_count_++] = id;
    }
    return;
  }
  slots_[slot] = static_cast<std::uint16_t>(group_count_);
  groups_[group_count_++] = {number, bit, id, slot};
}

std::optional<std::uint32_t> MemoPlanner::plan(std::span<const std::uint32_t> ids) {
  ESPALIER_ASSERT(ids.size() <= kPieceIds);
  if (const auto wrong = find_places(ids)) return wrong;
  group_count_ = 0;
  alone_count_ = 0;
  count_ = 0;
  for (std::uint32_t i = 0; i < ids.size(); ++i) {
    const std::uint32_t place = places_[i];
    std::uint32_t row = rows_of_ids_[i];
    if (place == kNoPlace) {
      alone_[alone_count_++] = row;
    } else if (use_.sums) {
      add_to_group(place, row == kNoPlace ? place | kPlaceBit : row);
    } else {
      alone_[alone_count_++] = memo_.row_of_place(place);
    }
  }
  for (std::uint32_t i = 0; i < group_count_; ++i) {
    const Group& group = groups_[i];
    if (!std::has_single_bit(group.mask)) planned_[count_++] = {group.number, group.mask};
  }
  const auto row_of = [this](std::uint32_t id) {
    return (id & kPlaceBit) != 0 && use_.renumbered ? memo_.row_of_place(id & ~kPlaceBit) : id;
  };
  for (std::uint32_t i = 0; i < group_count_; ++i) {
    const Group& group = groups_[i];
    if (std::has_single_bit(group.mask)) planned_[count_++] = {row_of(group.id), 0};
  }
  for (std::uint32_t i = 0; i < alone_count_; ++i) planned_[count_++] = {row_of(alone_[i]), 0};
  return std::nullopt;
}

}  // namespace espalier::embedding
