// SPDX-License-Identifier: Apache-2.0
// Tables in the form that a processor searches fastest: the fat root as one sorted array with a
// 16-way search tree above it, the nodes of a set contiguous, with lows and ways apart, so that
// each step down is one search among sixteen numbers (low_search.hpp). Answers as find() does
// (index_tables.hpp).
//
// Thread: any while it is not changed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/cpu.hpp"
#include "dataplane/compiler.hpp"
#include "dataplane/huge_allocator.hpp"
#include "dataplane/index_tables.hpp"
#include "dataplane/low_search.hpp"

namespace espalier::dataplane {

/// Numbers from `low` on, up to the next run, have this result.
struct RangeRun {
  std::uint64_t low = 0;
  std::uint32_t result = 0;
  friend bool operator==(const RangeRun&, const RangeRun&) = default;
};

/// What range tables say of all keys, ascending, the first at 0, neighbours of different results.
/// Requires: tables that check() accepts. Cost: linear in the entries.
[[nodiscard]] std::vector<RangeRun> range_runs(const RangeTables& tables);

class IndexLookup {
 public:
  /// Requires: tables that check() accepts; a processor that has these instructions.
  explicit IndexLookup(const IndexTables& tables, base::Isa isa = base::isa());

  /// Requires: tables with a fat root. Cost: about 15 ns for the fat root, and for each set some
  /// lines of cache, four of which are waited for.
  [[nodiscard]] Found find(std::uint64_t key) const;
  /// The same from a node of the first set on. Requires: cursor < nodes_of_first_set().
  [[nodiscard]] Found find_from(std::uint32_t cursor, std::uint64_t key) const;
  [[nodiscard]] bool has_root() const { return !ways_.empty(); }
  [[nodiscard]] std::size_t nodes_of_first_set() const {
    return sets_.empty() ? 0 : sets_.front().nodes.size();
  }

  /// Keys that are looked for together, at most.
  static constexpr std::size_t kTogether = 32;
  /// The same for a group of keys, step by step for all of them, so that their cache misses overlap
  /// (group prefetching). Requires: at most kTogether, and as many `found`. Cost: a fraction of
  /// that of one by one.
  void find_together(std::span<const std::uint64_t> keys, std::span<Found> found) const;
  /// The same, each key from its cursor on. Requires: as many of these, as find_from() wants them.
  void find_together_from(std::span<const std::uint32_t> cursors,
                          std::span<const std::uint64_t> keys, std::span<Found> found) const;

  /// As set_address() of tables (compiler.hpp). Requires: the place exists. Cost: of the fat root a
  /// look at each range, below 1 µs; else a store.
  void set_address(const EntryPlace& place, std::uint64_t address);

 private:
  // Two lines to search in, and one more for the way.
  struct alignas(64) Node {
    std::array<std::uint64_t, kLowsTogether> lows;  // 0, and the pivots
    std::array<Way, kWaysMax> ways;
  };
  static_assert(kWaysMax == kLowsTogether);
  struct Set {
    std::vector<Node, HugeAllocator<Node>> nodes;
    std::vector<std::uint32_t> way_counts;  // of each node
  };
  struct Walk;
  static const Node kNoNodes;
  [[nodiscard]] const Node* nodes_of(std::size_t set) const;
  // Without cursors all keys begin at the fat root.
  using FindTogether = void (*)(const IndexLookup&, std::span<const std::uint32_t> cursors,
                                std::span<const std::uint64_t> keys, std::span<Found>);
  static FindTogether form_of(base::Isa isa);
  [[nodiscard]] std::size_t run_of(std::uint64_t key) const;
  [[nodiscard]] Found go_down(Found found, std::uint64_t key) const;
  void add_root(const IndexTables& tables);

  // The lowest level first, whose size is a power of two, filled up with the largest number, so
  // that a search by halves always takes as many steps. Each level above has every sixteenth, up to
  // one of no more than sixteen; it alone is filled up, behind top_last_.
  std::vector<std::vector<std::uint64_t>> levels_;
  std::uint32_t top_last_ = 0;
  std::vector<Way> ways_;               // of each run
  std::vector<std::uint32_t> results_;  // the range that each run is of
  std::vector<Set> sets_;
  FindTogether find_together_;
};

}  // namespace espalier::dataplane
