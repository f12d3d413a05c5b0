// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/memo_planner.hpp"

#include <algorithm>
#include <bit>

#include "base/assert.hpp"
#include "channel/draw_seed.hpp"
#include "kinds/embedding/planted_embedding_bugs.hpp"

namespace espalier::embedding {

std::uint32_t planner_multiplier() {
  static const std::uint32_t drawn = static_cast<std::uint32_t>(client::draw_seed()) | 1;
  return drawn;
}

// What a slot says at first is of no piece, but names a group.
MemoPlanner::MemoPlanner(const Memo& memo, std::uint64_t rows, MemoUse use,
                         std::uint32_t multiplier)
    : memo_(memo), rows_(rows), use_(use), multiplier_(multiplier) {
  groups_.front() = {};
  groups_.back() = {};
}

bool MemoPlanner::is_wrong(std::uint32_t id) const {
  if (!use_.renumbered || (id & kPlaceBit) == 0) return id >= rows_;
  return !memo_.numbering().is_place(id & ~kPlaceBit);
}

bool MemoPlanner::take_places(std::span<const std::uint32_t> ids) {
  for (const std::uint32_t row : ids) {
    if (row >= rows_) [[unlikely]]
      return false;
    const std::uint32_t place = memo_.place_of(row);
    const std::uint32_t has_group = place != kNoPlace ? 1 : 0;
    alone_[alone_count_] = row;
    alone_count_ += 1 - has_group;
    places_[grouped_] = place;
    ids_[grouped_] = row;
    grouped_ += has_group;
  }
  return true;
}

bool MemoPlanner::take_renumbered(std::span<const std::uint32_t> ids) {
  std::uint32_t highest_row = 0;
  std::uint32_t highest_place = 0;
  for (const std::uint32_t id : ids) {
    const std::uint32_t has_group = id >> 31;
    alone_[alone_count_] = id;
    alone_count_ += 1 - has_group;
    places_[grouped_] = id & ~kPlaceBit;
    ids_[grouped_] = id;
    grouped_ += has_group;
    highest_row = std::max(highest_row, has_group != 0 ? 0 : id);
    highest_place = std::max(highest_place, has_group != 0 ? id & ~kPlaceBit : 0);
  }
  return (alone_count_ == 0 || highest_row < rows_) &&
         (grouped_ == 0 || group_of_place(highest_place) < memo_.numbering().groups());
}
static_assert(kPlaceBit == std::uint32_t{1} << 31);

bool MemoPlanner::take_ids(std::span<const std::uint32_t> ids) {
  group_count_ = 0;
  alone_count_ = 0;
  grouped_ = 0;
  if (use_.sums) return use_.renumbered ? take_renumbered(ids) : take_places(ids);
  if (std::ranges::any_of(ids, [this](std::uint32_t id) { return is_wrong(id); })) return false;
  std::ranges::copy(ids, alone_.begin());  // in their order, for each may have a weight
  alone_count_ = static_cast<std::uint32_t>(ids.size());
  return true;
}

void MemoPlanner::find_groups() {
  if (round_ == kRoundsMax) {
    slots_.fill(0);
    round_ = 0;
  }
  const std::uint32_t round = ++round_;
  for (std::uint32_t i = 0; i < grouped_; ++i) {
    const std::uint32_t number = group_of_place(places_[i]);
    const std::uint32_t bit = bit_of_place(places_[i]);
    const std::uint32_t id = ids_[i];
    std::uint32_t slot = number * multiplier_ >> (32 - std::bit_width(kSlots - 1));
    std::uint32_t said = slots_[slot];
    ++probes_;
    // Not `&&`: what a slot says of another piece is looked up as well.
    while (((said >> 16 == round) & (groups_[said & 0xFFFF].number != number)) != 0) [[unlikely]] {
        slot = (slot + 1) % kSlots;
        said = slots_[slot];
        ++probes_;
      }
    const bool known = said >> 16 == round;
    const std::uint32_t at = known ? said & 0xFFFF : group_count_;
    const Group before = groups_[known ? at : kPieceIds];
    slots_[slot] = round << 16 | at;
    group_count_ += known ? 0 : 1;
    alone_[alone_count_] = id;
    alone_count_ += (before.mask & bit) != 0 && !planted(Bug::repeated_id_once) ? 1 : 0;
    groups_[at] = {number, before.mask | bit, known ? before.id : id};
  }
}

// Requires: places ascend.
void MemoPlanner::find_groups_in_order() {
  Group group{kNoPlace, 0, 0};  // no place has that number
  std::uint32_t behind = 0;     // the groups that were met
  for (std::uint32_t i = 0; i < grouped_; ++i) {
    const std::uint32_t number = group_of_place(places_[i]);
    const std::uint32_t bit = bit_of_place(places_[i]);
    const std::uint32_t id = ids_[i];
    const bool same = number == group.number;
    const std::uint32_t mask = same ? group.mask : 0;
    alone_[alone_count_] = id;
    alone_count_ += (mask & bit) != 0 && !planted(Bug::repeated_id_once) ? 1 : 0;
    group = {number, mask | bit, same ? group.id : id};
    behind += same ? 0 : 1;
    groups_[behind - 1] = group;
  }
  group_count_ = behind;
}

// Groups of which a sum is read, and then those of which one row is.
void MemoPlanner::split_groups() {
  single_count_ = 0;
  count_ = 0;
  for (std::uint32_t i = 0; i < group_count_; ++i) {
    const Group& group = groups_[i];
    const bool several = (group.mask & (group.mask - 1)) != 0;
    planned_[count_] = {group.number, group.mask, 0};
    count_ += several ? 1 : 0;
    ids_[single_count_] = group.id;
    single_count_ += several ? 0 : 1;
  }
}

// Of renumbered ids the rows of a group are counted here, once for all of its ids.
bool MemoPlanner::number_sums() {
  std::uint32_t wrong = 0;
  for (std::uint32_t i = 0; i < count_; ++i) {
    const NumberedGroup group = memo_.numbering().group(planned_[i].row);
    wrong |= planned_[i].mask >> group.rows;
    planned_[i].sum = memo_.number_of_sum(group, planned_[i].mask);
  }
  sum_count_ = count_;
  return wrong == 0;
}

bool MemoPlanner::add_rows(std::span<const std::uint32_t> ids) {
  for (const std::uint32_t id : ids) {
    std::uint32_t row = id;
    if (use_.renumbered && (id & kPlaceBit) != 0) {
      const std::uint32_t member = id & 7;
      const NumberedGroup group = memo_.numbering().group(group_of_place(id & ~kPlaceBit));
      if (member >= group.rows) [[unlikely]]
        return false;
      row = memo_.row_of(group, member);
    }
    planned_[count_++] = {row, 0, 0};
  }
  return true;
}

std::optional<std::uint32_t> MemoPlanner::plan(std::span<const std::uint32_t> ids) {
  ESPALIER_ASSERT(ids.size() <= kPieceIds);
  bool right = take_ids(ids);
  if (right) {
    const auto places = std::span(places_).first(grouped_);
    if (std::ranges::is_sorted(places)) {
      find_groups_in_order();
    } else {
      find_groups();
    }
    split_groups();
    right = number_sums() && add_rows(std::span(ids_).first(single_count_)) &&
            add_rows(std::span(alone_).first(alone_count_));
  }
  if (right) return std::nullopt;
  const auto wrong = std::ranges::find_if(ids, [this](std::uint32_t id) { return is_wrong(id); });
  ESPALIER_ASSERT(wrong != ids.end());
  return static_cast<std::uint32_t>(wrong - ids.begin());
}

}  // namespace espalier::embedding
