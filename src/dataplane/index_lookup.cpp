// SPDX-License-Identifier: Apache-2.0
#include "dataplane/index_lookup.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/assert.hpp"
#include "dataplane/planted_dataplane_bugs.hpp"

namespace espalier::dataplane {
namespace {

using base::planted;

// Walks sub-tables in the order of their keys; each is led to once.
class RunWriter {
 public:
  explicit RunWriter(const RangeTables& tables) : tables_(tables) {}

  std::vector<RangeRun> run() {
    write(0, 0, 0, tables_.preset);
    return std::move(runs_);
  }

 private:
  // The keys of one sub-table, which begin at `base`; `otherwise` is the result where it has no
  // entry.
  void write(std::size_t stage, std::uint32_t table, std::uint64_t base, std::uint32_t otherwise) {
    const auto& entries = tables_.stages[stage];
    const std::size_t below = tables_.stages.size() - 1 - stage;
    const auto shift = static_cast<std::uint32_t>(tables_.bits_per_stage * below);
    auto at = std::ranges::lower_bound(entries, table, {}, &RangeEntry::table);
    std::uint64_t cell = 0;
    for (; at != entries.end() && at->table == table; ++at) {
      if (cell != at->first) add(base + (cell << shift), otherwise);
      if (at->next == kDone) {
        add(base + (std::uint64_t{at->first} << shift), at->result);
      } else {
        write(stage + 1, at->next, base + (std::uint64_t{at->first} << shift), at->result);
      }
      cell = std::uint64_t{at->last} + 1;
    }
    if (cell != std::uint64_t{1} << tables_.bits_per_stage) add(base + (cell << shift), otherwise);
  }
  void add(std::uint64_t low, std::uint32_t result) {
    if (!runs_.empty() && runs_.back().result == result) return;
    runs_.push_back({low, result});
  }

  const RangeTables& tables_;
  std::vector<RangeRun> runs_;
};

}  // namespace

std::vector<RangeRun> range_runs(const RangeTables& tables) { return RunWriter(tables).run(); }

IndexLookup::IndexLookup(const IndexTables& tables) {
  const std::vector<RangeRun> runs = range_runs(tables.root);
  lows_.assign(std::bit_ceil(runs.size()), std::numeric_limits<std::uint64_t>::max());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    lows_[i] = runs[i].low;
    ways_.push_back(tables.ways[runs[i].result]);
    results_.push_back(runs[i].result);
  }
  // A key may be the largest number: what is behind the last run is the last run.
  ways_.resize(lows_.size(), ways_.back());
  results_.resize(lows_.size(), results_.back());
  for (const NodeSet& set : tables.sets) {
    auto& into = sets_.emplace_back();
    into.reserve(set.size());
    for (const SetNode& node : set) {
      Node& made = into.emplace_back();
      made.pivots = node.pivots;
      made.way_count = node.way_count;
      for (std::size_t i = 0; i < kWaysMax; ++i) {
        made.addresses[i] = node.ways[i].address;
        made.next[i] = node.ways[i].next;
      }
    }
  }
}

// The last run that begins at or below the key. The first one begins at 0.
std::size_t IndexLookup::run_of(std::uint64_t key) const {
  std::size_t at = 0;
  for (std::size_t half = lows_.size() / 2; half != 0; half /= 2) {
    at += lows_[at + half] <= key ? half : 0;
  }
  return at;
}

Found IndexLookup::find(std::uint64_t key) const {
  const Way& way = ways_[run_of(key)];
  Found found{way.address, 0};
  std::uint32_t next = way.next;
  while (next != kNoNode) {
    const Node& node = sets_[found.sets][next];
    // 15 pivots are searched in four steps, each of which halves them.
    std::size_t at = 0;
    for (std::size_t half = kWaysMax / 2; half != 0; half /= 2) {
      const bool left = planted(Bug::separator_off_by_one) && node.pivots[at + half - 1] == key;
      at += node.pivots[at + half - 1] <= key && !left ? half : 0;
    }
    found.address = node.addresses[at];
    next = node.next[at];
    ++found.sets;
  }
  return found;
}

void IndexLookup::set_address(const EntryPlace& place, std::uint64_t address) {
  if (place.set == EntryPlace::kRoot) {
    for (std::size_t i = 0; i < results_.size(); ++i) {
      if (results_[i] == place.node) ways_[i].address = address;
    }
    return;
  }
  Node& node = sets_[place.set][place.node];
  // Behind the last way all are the last way.
  const bool is_last = place.way + 1 == node.way_count;
  const auto begin = node.addresses.begin() + place.way;
  std::fill(begin, is_last ? node.addresses.end() : begin + 1, address);
}

}  // namespace espalier::dataplane
