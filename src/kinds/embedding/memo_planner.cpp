// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/memo_planner.hpp"

#include <algorithm>
#include <bit>

#include "base/assert.hpp"
#include "channel/draw_seed.hpp"
#include "kinds/embedding/planted_embedding_bugs.hpp"

namespace espalier::embedding {
namespace {

std::uint32_t all_bits_if_equal(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t other = a ^ b;
  return ((other | (0 - other)) >> 31) - 1;
}

/// 1 if a group has the row of this place already.
std::uint32_t is_again(std::uint32_t mask, std::uint32_t place) {
  if (planted(Bug::repeated_id_once)) return 0;
  return mask >> (place & 7) & 1;
}

}  // namespace

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

// Here and below counts are kept beside what is written, so that none waits for the one before; and
// what holds is a mask of all bits or none, for compilers make branches of conditions.

bool MemoPlanner::take_places(std::span<const std::uint32_t> ids) {
  std::uint32_t alone = 0;
  std::uint32_t grouped = 0;
  for (const std::uint32_t row : ids) {
    if (row >= rows_) [[unlikely]]
      return false;
    const std::uint32_t place = memo_.place_of(row);
    const std::uint32_t has_group = place != kNoPlace ? 1 : 0;
    alone_[alone] = row;
    alone += 1 - has_group;
    places_[grouped] = place;
    ids_[grouped] = row;
    grouped += has_group;
  }
  alone_count_ = alone;
  grouped_ = grouped;
  return true;
}

bool MemoPlanner::take_renumbered(std::span<const std::uint32_t> ids) {
  // Below which rows are, and places; those of groups' rows are looked at once for each group.
  const std::uint64_t rows = std::min<std::uint64_t>(rows_, kPlaceBit);
  const std::uint64_t places = std::uint64_t{memo_.numbering().groups()} << 3;
  std::uint32_t alone = 0;
  std::uint32_t grouped = 0;
  std::uint64_t beyond = 0;  // its highest bit
  for (const std::uint32_t id : ids) {
    const std::uint32_t has_group = id >> 31;
    const std::uint32_t place = id & ~kPlaceBit;
    alone_[alone] = id;
    alone += 1 - has_group;
    places_[grouped] = place;
    ids_[grouped] = id;
    grouped += has_group;
    beyond |= (rows ^ ((rows ^ places) & (std::uint64_t{0} - has_group))) - 1 - place;
  }
  alone_count_ = alone;
  grouped_ = grouped;
  return beyond >> 63 == 0;
}
static_assert(kPlaceBit == std::uint32_t{1} << 31);

void MemoPlanner::expect(std::span<const std::uint32_t> ids) const {
  if (!use_.sums || use_.renumbered) return;
  for (const std::uint32_t id : ids) memo_.prefetch_place(id);
}

bool MemoPlanner::take_ids(std::span<const std::uint32_t> ids) {
  if (use_.sums) return use_.renumbered ? take_renumbered(ids) : take_places(ids);
  if (std::ranges::any_of(ids, [this](std::uint32_t id) { return is_wrong(id); })) return false;
  std::ranges::copy(ids, alone_.begin());  // in their order, for each may have a weight
  alone_count_ = static_cast<std::uint32_t>(ids.size());
  grouped_ = 0;
  return true;
}

void MemoPlanner::find_groups() {
  if (round_ == kRoundsMax) {
    slots_.fill(0);
    round_ = 0;
  }
  const std::uint32_t round = ++round_;
  std::uint32_t count = 0;
  std::uint32_t alone = alone_count_;
  std::uint32_t collisions = 0;
  for (std::uint32_t i = 0; i < grouped_; ++i) {
    const std::uint32_t number = group_of_place(places_[i]);
    const std::uint32_t bit = bit_of_place(places_[i]);
    const std::uint32_t id = ids_[i];
    std::uint32_t slot = number * multiplier_ >> (32 - std::bit_width(kSlots - 1));
    std::uint32_t said = slots_[slot];
    std::uint32_t known = all_bits_if_equal(said >> 16, round);
    while ((known & (groups_[said & 0xFFFF].number ^ number)) != 0) [[unlikely]] {
        slot = (slot + 1) % kSlots;
        said = slots_[slot];
        known = all_bits_if_equal(said >> 16, round);
        ++collisions;
      }
    const std::uint32_t at = (said & 0xFFFF & known) | (count & ~known);
    const Group before = groups_[(at & known) | (kPieceIds & ~known)];
    slots_[slot] = round << 16 | at;
    count += known + 1;
    alone_[alone] = id;
    alone += is_again(before.mask, places_[i]);
    groups_[at] = {number, before.mask | bit, (before.id & known) | (id & ~known)};
  }
  group_count_ = count;
  alone_count_ = alone;
  probes_ += grouped_ + collisions;
}

// Ids without a group are the first ones, and those of one group follow each other; which of them
// do is known without those before, so that nothing waits for long.
bool MemoPlanner::take_ascending(std::span<const std::uint32_t> ids) {
  const auto places =
      ids.subspan(static_cast<std::size_t>(std::ranges::lower_bound(ids, kPlaceBit) - ids.begin()));
  const auto rows = ids.first(ids.size() - places.size());
  std::ranges::copy(rows, alone_.begin());
  auto alone = static_cast<std::uint32_t>(rows.size());
  std::uint32_t sums = 0;
  std::uint32_t singles = 0;
  std::uint32_t before = places.empty() ? 0 : places.front();
  std::uint32_t mask = 0;  // of the group of that
  const auto end_group = [&](std::uint32_t ends) {
    const std::uint32_t several = (mask & (mask - 1)) != 0 ? 1 : 0;
    planned_[sums] = {group_of_place(before & ~kPlaceBit), mask, 0};
    sums += ends & several;
    ids_[singles] = before;
    singles += ends & ~several & 1;
  };
  for (const std::uint32_t place : places) {
    const std::uint32_t same = all_bits_if_equal(place >> 3, before >> 3);
    end_group(same + 1);
    mask &= same;
    alone_[alone] = place;
    alone += is_again(mask, place);
    mask |= bit_of_place(place);
    before = place;
  }
  if (!places.empty()) end_group(1);
  set_counts(sums, singles, alone);
  return (rows.empty() || rows.back() < rows_) &&
         (places.empty() ||
          group_of_place(places.back() & ~kPlaceBit) < memo_.numbering().groups());
}

void MemoPlanner::set_counts(std::uint32_t sums, std::uint32_t singles, std::uint32_t alone) {
  sum_count_ = sums;
  count_ = sums;
  single_count_ = singles;
  alone_count_ = alone;
}

// Groups of which a sum is read, and then those of which one row is.
void MemoPlanner::split_groups() {
  std::uint32_t sums = 0;
  std::uint32_t singles = 0;
  for (std::uint32_t i = 0; i < group_count_; ++i) {
    const Group group = groups_[i];
    const std::uint32_t single = (group.mask & (group.mask - 1)) == 0 ? 1 : 0;
    planned_[sums] = {group.number, group.mask, 0};
    sums += 1 - single;
    ids_[singles] = group.id;
    singles += single;
  }
  set_counts(sums, singles, alone_count_);
}

// Of renumbered ids the rows of a group are counted here, once for all of its ids.
bool MemoPlanner::number_sums() {
  std::uint32_t wrong = 0;
  for (PlannedRow& sum : std::span(planned_).first(sum_count_)) {
    const NumberedGroup group = memo_.numbering().group(sum.row);
    wrong |= sum.mask >> group.rows;
    sum.sum = memo_.number_of_sum(group, sum.mask);
  }
  return wrong == 0;
}

bool MemoPlanner::add_rows(std::span<const std::uint32_t> ids) {
  std::uint32_t count = count_;
  for (const std::uint32_t id : ids) {
    std::uint32_t row = id;
    if (use_.renumbered && (id & kPlaceBit) != 0) {
      const std::uint32_t member = id & 7;
      const NumberedGroup group = memo_.numbering().group(group_of_place(id & ~kPlaceBit));
      if (member >= group.rows) [[unlikely]]
        return false;
      row = memo_.row_of(group, member);
    }
    planned_[count++] = {row, 0, 0};
  }
  count_ = count;
  return true;
}

bool MemoPlanner::take(std::span<const std::uint32_t> ids) {
  if (use_.sums && use_.renumbered && std::ranges::is_sorted(ids)) return take_ascending(ids);
  if (!take_ids(ids)) return false;
  find_groups();
  split_groups();
  return true;
}

std::optional<std::uint32_t> MemoPlanner::plan(std::span<const std::uint32_t> ids) {
  ESPALIER_ASSERT(ids.size() <= kPieceIds);
  const bool right = take(ids) && number_sums() && add_rows(std::span(ids_).first(single_count_)) &&
                     add_rows(std::span(alone_).first(alone_count_));
  if (right) return std::nullopt;
  const auto wrong = std::ranges::find_if(ids, [this](std::uint32_t id) { return is_wrong(id); });
  ESPALIER_ASSERT(wrong != ids.end());
  return static_cast<std::uint32_t>(wrong - ids.begin());
}

}  // namespace espalier::embedding
