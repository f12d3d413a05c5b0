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

// Whether a row has a group cannot be foreseen, and its place may come from memory: so nothing here
// branches by it, and all of them are on their way together.
std::optional<std::uint32_t> MemoPlanner::find_places(std::span<const std::uint32_t> ids) {
  if (use_.renumbered) return find_renumbered(ids);
  for (std::uint32_t i = 0; i < ids.size(); ++i) {
    const std::uint32_t row = ids[i];
    if (row >= rows_) return i;
    places_[i] = use_.sums ? memo_.place_of(row) : kNoPlace;
    rows_of_ids_[i] = row;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> MemoPlanner::find_renumbered(std::span<const std::uint32_t> ids) {
  for (std::uint32_t i = 0; i < ids.size(); ++i) {
    const std::uint32_t id = ids[i];
    const bool is_place = (id & kPlaceBit) != 0;
    if (is_place ? !memo_.numbering().is_place(id & ~kPlaceBit) : id >= rows_) return i;
    places_[i] = is_place ? id & ~kPlaceBit : kNoPlace;
    rows_of_ids_[i] = is_place ? kNoPlace : id;  // it is looked up only if it is read
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

// Likewise: what goes where is counted, and not branched by.
void MemoPlanner::find_groups(std::uint32_t ids) {
  std::uint32_t grouped = 0;
  for (std::uint32_t i = 0; i < ids; ++i) {
    const bool has_group = places_[i] != kNoPlace;
    const std::uint32_t row = rows_of_ids_[i];
    alone_[alone_count_] = row;
    alone_count_ += has_group ? 0 : 1;
    places_[grouped] = places_[i];  // this one or one before it
    rows_of_ids_[grouped] = row;
    grouped += has_group ? 1 : 0;
  }
  for (std::uint32_t i = 0; i < grouped; ++i) {
    const std::uint32_t place = places_[i];
    const std::uint32_t row = rows_of_ids_[i];
    add_to_group(place, row == kNoPlace ? place | kPlaceBit : row);
  }
}

std::optional<std::uint32_t> MemoPlanner::plan(std::span<const std::uint32_t> ids) {
  ESPALIER_ASSERT(ids.size() <= kPieceIds);
  if (const auto wrong = find_places(ids)) return wrong;
  group_count_ = 0;
  alone_count_ = 0;
  if (use_.sums) {
    find_groups(static_cast<std::uint32_t>(ids.size()));
  } else {  // in the order of the ids, for each may have a weight
    for (std::uint32_t i = 0; i < ids.size(); ++i) {
      alone_[alone_count_++] =
          places_[i] == kNoPlace ? rows_of_ids_[i] : memo_.row_of_place(places_[i]);
    }
  }
  emit();
  return std::nullopt;
}

// Sums, then rows of groups of which nothing else is asked for, then the others.
void MemoPlanner::emit() {
  const auto row_of = [this](std::uint32_t id) {
    return (id & kPlaceBit) != 0 && use_.renumbered ? memo_.row_of_place(id & ~kPlaceBit) : id;
  };
  std::uint32_t singles = 0;
  count_ = 0;
  for (std::uint32_t i = 0; i < group_count_; ++i) {
    const Group& group = groups_[i];
    const bool several = (group.mask & (group.mask - 1)) != 0;
    planned_[count_] = {group.number, group.mask};
    count_ += several ? 1 : 0;
    rows_of_ids_[singles] = group.id;
    singles += several ? 0 : 1;
  }
  for (std::uint32_t i = 0; i < singles; ++i) planned_[count_++] = {row_of(rows_of_ids_[i]), 0};
  for (std::uint32_t i = 0; i < alone_count_; ++i) planned_[count_++] = {row_of(alone_[i]), 0};
}

}  // namespace espalier::embedding
