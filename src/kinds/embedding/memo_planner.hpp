// SPDX-License-Identifier: Apache-2.0
// Which rows a bag reads of a table with groups: sums in place of rows of one group.
//
// Ids are taken in pieces. In a piece each group that has two ids or more reads one sum; an id that
// comes again, one whose group has no other, and one without a group read the row itself. Sums come
// before rows, in the order in which ids bring them. So what a bag comes to has other roundings
// than by its rows alone, but is still the same for the same ids and groups.
//
// Whether an id has a group, and whether that was met before, cannot be foreseen, and a branch that
// was taken wrongly costs as much as a row: so what goes where is counted, and not branched by, and
// all ids of a piece are on their way together. Places that ascend have their groups beside each
// other, and need no table; that is how clients send renumbered ids who sort them.
//
// The groups of a piece are found again in a small table, by a multiplier that each process draws:
// who does not know it cannot choose ids whose groups all meet in one place of it.
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

/// What is read: a row of the table, or a sum of a group.
struct PlannedRow {
  std::uint32_t row;   // of a sum the number of its group
  std::uint32_t mask;  // 0: a row
  std::uint32_t sum;   // which of all sums that of the mask is
};

/// An odd number, drawn once for this process.
[[nodiscard]] std::uint32_t planner_multiplier();

/// How the ids of bags are taken.
struct MemoUse {
  bool sums = false;        // may be read: else each id reads its row
  bool renumbered = false;  // ids with kPlaceBit are places
};

class MemoPlanner {
 public:
  /// At most so many ids are taken together.
  static constexpr std::uint32_t kPieceIds = 512;

  /// `rows`: ids below are rows. Requires: the memo outlives it; the multiplier is odd.
  MemoPlanner(const Memo& memo, std::uint64_t rows, MemoUse use,
              std::uint32_t multiplier = planner_multiplier());

  /// Plans some ids of one bag. Returns the place of an id that names no row, if one does, and
  /// planned() is of no use then. Requires: at most kPieceIds. Cost: some cycles for each.
  [[nodiscard]] std::optional<std::uint32_t> plan(std::span<const std::uint32_t> ids);
  /// Asks for what plan() looks up of these, which come soon. They may be any.
  void expect(std::span<const std::uint32_t> ids) const;
  [[nodiscard]] std::span<const PlannedRow> planned() const {
    return std::span(planned_).first(count_);
  }
  /// So many of them are sums, which come first.
  [[nodiscard]] std::uint32_t sums() const { return sum_count_; }
  /// Places of its table that were looked at, for all pieces together.
  [[nodiscard]] std::uint64_t probes() const { return probes_; }

 private:
  static constexpr std::uint32_t kSlots = 2 * kPieceIds;  // a power of two
  static constexpr std::uint32_t kRoundsMax = 0xFFFF;
  struct Group {
    std::uint32_t number;
    std::uint32_t mask;
    std::uint32_t id;  // its first one
  };

  // Each returns whether the ids are right, as far as it has looked at them.
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
  // One more than are needed, for what is written behind the last and not counted.
  std::array<std::uint32_t, kPieceIds + 1> places_;  // of ids that have a group
  std::array<std::uint32_t, kPieceIds + 1> ids_;     // these ids; then those of groups with one
  std::array<std::uint32_t, kPieceIds + 1> alone_;   // ids that read rows
  std::array<PlannedRow, kPieceIds + 1> planned_;
  std::array<Group, kPieceIds + 1> groups_;  // the last one is of no rows
  // Where a group stands in groups_, below the number of the piece that it is of.
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
