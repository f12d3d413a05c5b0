// SPDX-License-Identifier: Apache-2.0
#include "dataplane/range_tables.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/assert.hpp"

namespace espalier::dataplane {
namespace {

// The ranges that begin inside a sub-table, and what goes before the first of them.
struct Part {
  std::uint64_t base;         // the least key
  std::uint32_t first_range;  // of the base
  std::uint32_t last_range;   // of the greatest key
};

class Builder {
 public:
  Builder(std::span<const std::uint64_t> lows, std::uint32_t bits, std::uint32_t stages)
      : lows_(lows), bits_(bits), stages_(stages) {
    made_.bits_per_stage = bits;
    made_.stages.resize(stages);
  }

  RangeTables run() {
    made_.preset = static_cast<std::uint32_t>(lows_.size() - 1);
    std::vector<Part> tables;
    if (lows_.size() > 1) tables.push_back({0, 0, made_.preset});
    for (std::uint32_t stage = 0; stage < stages_; ++stage) {
      std::vector<Part> below;
      for (std::uint32_t table = 0; table < tables.size(); ++table) {
        fill(stage, table, tables[table], below);
      }
      tables = std::move(below);
    }
    return std::move(made_);
  }

 private:
  // All entries of one sub-table: a run for what one range covers, and one for each cell in which
  // another range begins, which leads on to the next stage.
  void fill(std::uint32_t stage, std::uint32_t table, const Part& part, std::vector<Part>& below) {
    const std::uint32_t shift = bits_ * (stages_ - 1 - stage);
    std::vector<RangeEntry>& entries = made_.stages[stage];
    std::uint64_t cell = 0;
    std::uint32_t range = part.first_range;
    while (range != part.last_range) {
      const std::uint64_t begin = lows_[range + 1];  // where the next range begins
      const std::uint64_t at = (begin - part.base) >> shift;
      // Before the cell in which it begins, or up to it where it begins with the cell.
      if (at != cell) {
        entries.push_back(entry(table, cell, at - 1, kDone, range));
        cell = at;
      }
      const std::uint64_t cell_base = part.base + (at << shift);
      if (begin == cell_base) ++range;
      // What else begins within the cell.
      std::uint32_t last = range;
      const std::uint64_t inside = (std::uint64_t{1} << shift) - 1;
      while (last != part.last_range && lows_[last + 1] - cell_base <= inside) ++last;
      if (last == range) continue;
      entries.push_back(entry(table, cell, cell, static_cast<std::uint32_t>(below.size()), last));
      below.push_back({cell_base, range, last});
      range = last;
      ++cell;
    }
    // What is left has the last range, which is known already: by the preset, or by the entry that
    // led here.
    ESPALIER_DEBUG_ASSERT(cell <= std::uint64_t{1} << bits_);
  }

  static RangeEntry entry(std::uint32_t table, std::uint64_t first, std::uint64_t last,
                          std::uint32_t next, std::uint32_t result) {
    return {table, static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(last), next,
            result};
  }

  std::span<const std::uint64_t> lows_;
  std::uint32_t bits_;
  std::uint32_t stages_;
  RangeTables made_;
};

}  // namespace

RangeTables make_range_tables(std::span<const std::uint64_t> lows, std::uint32_t bits_per_stage,
                              std::uint32_t stages) {
  ESPALIER_ASSERT(!lows.empty() && lows.front() == 0);
  ESPALIER_ASSERT(bits_per_stage >= 1 && bits_per_stage <= 16 && bits_per_stage * stages <= 64);
  ESPALIER_DEBUG_ASSERT(std::ranges::is_sorted(lows, std::less_equal{}));
  return Builder(lows, bits_per_stage, stages).run();
}

std::uint32_t find_range(const RangeTables& tables, std::uint64_t key) {
  std::uint32_t result = tables.preset;
  std::uint32_t table = 0;
  const auto stages = static_cast<std::uint32_t>(tables.stages.size());
  for (std::uint32_t stage = 0; stage < stages && table != kDone; ++stage) {
    const std::uint32_t shift = tables.bits_per_stage * (stages - 1 - stage);
    const std::uint64_t mask = (std::uint64_t{1} << tables.bits_per_stage) - 1;
    const auto part = static_cast<std::uint16_t>((key >> shift) & mask);
    const auto& entries = tables.stages[stage];
    const auto behind = std::ranges::upper_bound(
        entries, std::pair(table, part), std::less{},
        [](const RangeEntry& of) { return std::pair(of.table, of.first); });
    if (behind == entries.begin()) break;
    const RangeEntry& found = *(behind - 1);
    if (found.table != table || part > found.last) break;
    result = found.result;
    table = found.next;
  }
  return result;
}

}  // namespace espalier::dataplane
