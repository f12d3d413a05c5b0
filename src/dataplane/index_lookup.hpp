// SPDX-License-Identifier: Apache-2.0
// Tables in the form that a processor searches fastest: the fat root as one sorted array, the nodes
// of a set side by side with pivots and ways apart. Answers as find() does (index_tables.hpp).
//
// Thread: any while it is not changed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/compiler.hpp"
#include "dataplane/index_tables.hpp"

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
  /// Requires: tables that check() accepts.
  explicit IndexLookup(const IndexTables& tables);

  /// Cost: about 15 ns for the fat root, and for each set some lines of cache, four of which are
  /// waited for.
  [[nodiscard]] Found find(std::uint64_t key) const;

  /// As set_address() of tables (compiler.hpp). Requires: the place exists. Cost: of the fat root a
  /// look at each range, below 1 µs; else a store.
  void set_address(const EntryPlace& place, std::uint64_t address);

 private:
  struct alignas(64) Node {
    std::array<std::uint64_t, kPivotsMax> pivots;
    std::array<std::uint64_t, kWaysMax> addresses;
    std::array<std::uint32_t, kWaysMax> next;
    std::uint32_t way_count;
  };
  [[nodiscard]] std::size_t run_of(std::uint64_t key) const;

  // A power of two, filled up with the last low, so that each search takes as many steps.
  std::vector<std::uint64_t> lows_;
  std::vector<Way> ways_;               // of each run
  std::vector<std::uint32_t> results_;  // the range that each run is of
  std::vector<std::vector<Node>> sets_;
};

}  // namespace espalier::dataplane
