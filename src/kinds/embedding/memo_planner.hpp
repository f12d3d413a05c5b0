// SPDX-License-Identifier: Apache-2.0
// Plans the rows that a bag reads of a table with groups: sums in place of rows of one group.
//
// Ids are processed in pieces. In a piece each group that has two ids or more reads one sum; a
// repeated id, one whose group has no other, and one without a group read the row itself. Sums come
// before rows, in the order in which ids bring them. So a bag's result has other roundings than by
// its rows alone, but is always the same for the same ids and groups.
//
// Whether an id has a group, and whether that occurred before, is unpredictable, and a mispredicted
// branch costs as much as a row: so destinations are counted instead of branched on, and all ids of
// a piece are fetched together. Ascending places have their groups adjacent, and need no table;
// clients that sort renumbered ids send them so.
//
// The groups of a piece are found again in a small hash table, by a multiplier that each process
// draws at random: a client that does not know it cannot choose ids whose groups collide.
//
// Thread: one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kinds/embedding/memo.hpp"

namespace espalier::embedding {

/// A row to read: a row of the table, or a sum of a group.
struct PlannedRow {
  std::uint32_t row;   // for a sum the number of its group
  std::uint32_t mask;  // 0: a row
  std::uint32_t sum;   // the number of the mask's sum
};

/// An odd number, random for this process.
[[nodiscard]] std::uint32_t planner_multiplier();

/// The interpretation of the ids of bags.
struct MemoUse {
  bool sums = false;        // may be read: else each id reads its row
  bool renumbered = false;  // ids with kPlaceBit are places
};

class MemoPlanner {
 public:
  /// Limit on ids that are processed together.
  static constexpr std::uint32_t kPieceIds = 512;

  /// `rows`: ids below are rows. Requires: the memo outlives it; the multiplier is odd.
  MemoPlanner(const Memo& memo, std::uint64_t rows, MemoUse use,
              std::uint32_t multiplier = planner_multiplier());

  /// Plans some ids of one bag. Returns the place of an id that names no row, if there is one; then
  /// planned() is void. Requires: at most kPieceIds. Cost: some cycles for each.
  [[nodiscard]] std::optional<std::uint32_t> plan(std::span<const std::uint32_t> ids);
  /// Prefetches what plan() will look up for these ids, which may be invalid.
  void expect(std::span<const std::uint32_t> ids) const;
  [[nodiscard]] std::span<const PlannedRow> planned() const {
    return std::span(planned_).first(count_);
  }
  /// The number of sums, which come first.
  [[nodiscard]] std::uint32_t sums() const { return sum_count_; }
  /// Slots of its table that were probed, for all pieces together.
  [[nodiscard]] std::uint64_t probes() const { return probes_; }

 private:
  static constexpr std::uint32_t kSlots = 2 * kPieceIds;  // a power of two
  static constexpr std::uint32_t kRoundsMax = 0xFFFF;
  struct Group {
    std::uint32_t number;
    std::uint32_t mask;
    std::uint32_t id;  // its first one
  };

  // Each returns whether the ids are valid, as far as it has looked at them.
  bool take(std::span<const std::uint32_t> ids);
  bool take_ascending(std::span<const std::uint32_t> ids);
  bool take_ids(std::span<const std::uint32_t> ids);
  bool take_places(std::span<const std::uint32_t> ids);
  bool take_renumbered(std::span<const std::uint32_t> ids);
  bool number_sums();
  bool add_rows(std::span<const std::uint32_t> ids);

  [[nodiscard]] bool is_wrong(std::uint32_t id) const;
  void find_groups();
  void split_groups();
  void set_counts(std::uint32_t sums, std::uint32_t singles, std::uint32_t alone);

  const Memo& memo_;
  const std::uint64_t rows_;
  const MemoUse use_;
  const std::uint32_t multiplier_;
  // One more than needed, for entries written behind the last and not counted.
  std::array<std::uint32_t, kPieceIds + 1> places_;  // of ids that have a group
  std::array<std::uint32_t, kPieceIds + 1> ids_;     // these ids; then those of groups with one
  std::array<std::uint32_t, kPieceIds + 1> alone_;   // ids that read rows
  std::array<PlannedRow, kPieceIds + 1> planned_;
  std::array<Group, kPieceIds + 1> groups_;  // the last one has no rows
  // The index of a group in groups_, below the number of its piece.
  std::array<std::uint32_t, kSlots> slots_{};
  std::uint32_t round_ = 0;
  std::uint32_t grouped_ = 0;
  std::uint32_t group_count_ = 0;
  std::uint32_t single_count_ = 0;
  std::uint32_t alone_count_ = 0;
  std::uint32_t sum_count_ = 0;
  std::uint32_t count_ = 0;
  std::uint64_t probes_ = 0;
};

}  // namespace espalier::embedding
