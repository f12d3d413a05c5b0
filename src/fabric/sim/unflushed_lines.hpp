// SPDX-License-Identifier: Apache-2.0
// The lines of persistent regions that are still in a node's cache: bytes that WRITEs have stored
// through the cache, or past it with no fence yet. A crash of the node loses any of these lines,
// each by itself, for a cache evicts lines at any time, in any order.
//
// The model keeps the durable bytes of each such line; of a line only those that were stored since.
// Stores of the node itself are not seen: what a test stores stays.
//
// Thread: that of its world.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "base/random.hpp"
#include "fabric/region_table.hpp"
#include "fabric/sim/lines.hpp"

namespace espalier::fabric::sim {

/// A region, as a peer names it.
struct NamedRegion {
  RegionKey key = 0;
  Domain domain = 0;
};

class UnflushedLines {
 public:
  /// These bytes, which lie at `at`, are about to be stored.
  void before_store(NamedRegion region, std::uint64_t remote, const std::byte* at,
                    std::uint32_t bytes);
  /// They were stored past the cache, and fenced: they are durable.
  void fenced(RegionKey key, std::uint64_t remote, std::uint32_t bytes);
  /// The node crashes: each line is lost with this chance, if its region is still there. Returns
  /// how many were.
  std::uint64_t crash(RegionTable::Reader& reader, base::Random& random, double chance);

 private:
  using Name = std::pair<RegionKey, std::uint64_t>;  // and the address of the line
  struct Line {
    Domain domain = 0;
    std::uint64_t stored = 0;  // a bit for each byte that is not durable
    std::array<std::byte, kLineBytes> before{};
  };

  std::map<Name, Line> lines_;
};

}  // namespace espalier::fabric::sim
