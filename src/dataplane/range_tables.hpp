// SPDX-License-Identifier: Apache-2.0
// Ranges of wide keys as tables of narrow ranges, which switches have in TCAM: 64 bits are matched
// as four stages of 16. A stage is one table whose entries begin with the number of a sub-table:
//
//   result = preset; table = 0
//   for each stage:  look for the entry of `table` whose first <= part of the key <= last
//                    none:  done
//                    else:  result = entry.result; table = entry.next; done if that is kDone
//
// An entry that leads on carries the result of the last range within it, so what would be the last
// entry of a sub-table is left out: a lookup that meets no entry keeps what it has. So n ranges
// take at most 2n entries in each stage. [Fat-B+Tree §III-B, Algorithm 1], which carries nothing
// along, takes up to 3n.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace espalier::dataplane {

/// In the place of a sub-table: there is none.
inline constexpr std::uint32_t kDone = 0xFFFF'FFFF;

struct RangeEntry {
  std::uint32_t table = 0;
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  std::uint32_t next = kDone;  // the sub-table in the next stage
  std::uint32_t result = 0;    // the number of a range
  friend bool operator==(const RangeEntry&, const RangeEntry&) = default;
};

struct RangeTables {
  std::uint32_t bits_per_stage = 16;
  std::uint32_t preset = 0;
  /// Entries of a stage ascend by table, then by `first`, and none overlap.
  std::vector<std::vector<RangeEntry>> stages;
  friend bool operator==(const RangeTables&, const RangeTables&) = default;
};

/// Makes tables that find the range of a key of stages * bits_per_stage bits: range i is
/// lows[i] <= key < lows[i + 1], the last one goes to the end. Requires: lows[0] == 0, ascending,
/// within the width; bits_per_stage <= 16, at most 64 bits in all. Cost: linear in ranges.
[[nodiscard]] RangeTables make_range_tables(std::span<const std::uint64_t> lows,
                                            std::uint32_t bits_per_stage = 16,
                                            std::uint32_t stages = 4);

/// The range of a key, as a switch finds it. Tables may come from anywhere: sub-tables that do not
/// exist have no entries. Cost: a binary search in each stage.
[[nodiscard]] std::uint32_t find_range(const RangeTables& tables, std::uint64_t key);

}  // namespace espalier::dataplane
