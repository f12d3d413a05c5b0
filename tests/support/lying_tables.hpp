// SPDX-License-Identifier: Apache-2.0
// Well-formed tables of a switch with arbitrary content.
// Thread: a Random belongs to one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random.hpp"
#include "dataplane/index_tables.hpp"

namespace espalier::test {

/// Tables of the same shape as `tables`, with arbitrary addresses: `base` is the first of the
/// redirect key, for so many bytes.
[[nodiscard]] inline dataplane::IndexTables lying_tables(dataplane::IndexTables tables,
                                                         std::uint64_t base, std::uint64_t bytes,
                                                         base::Random& random) {
  const auto lie = [&](dataplane::Way& way) {
    const std::uint64_t offset = random.below(bytes + 4096);
    way.address = base + (random.chance(1.0 / 2) ? offset / 512 * 512 : offset);
    if (random.chance(1.0 / 10)) way.address = random();
  };
  for (dataplane::Way& way : tables.ways) lie(way);
  for (dataplane::NodeSet& set : tables.sets) {
    for (dataplane::SetNode& node : set) {
      for (std::size_t i = 0; i < node.ways.size(); ++i) {
        if (i < node.way_count) {
          lie(node.ways[i]);
        } else {
          node.ways[i] = node.ways[node.way_count - 1];
        }
      }
    }
  }
  return tables;
}

}  // namespace espalier::test
