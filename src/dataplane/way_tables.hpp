// SPDX-License-Identifier: Apache-2.0
// The tables of a map over the switches of a way, from the clients to the node: the fat root in the
// first one, and of the sets of nodes so many in each as it has room for. They are compiled as one
// and cut, so that a READ that passes all of them goes where one switch with all tables would send
// it.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <vector>

#include "dataplane/compiler.hpp"
#include "dataplane/switch_program.hpp"

namespace espalier::dataplane {

/// Room in one switch of a way.
struct HopBudget {
  std::size_t sets = 0;
  std::size_t nodes_per_set = TableLimits{}.nodes_per_set;
};

/// A way, and the fat root of its first switch.
struct WayBudget {
  std::size_t ranges = TableLimits{}.ranges;
  std::vector<HopBudget> hops;
};

/// What all switches of a way hold together; or a sentence that says why no tables can be cut so:
/// no switch, more than kHopsMax, or more sets than a way has.
[[nodiscard]] std::expected<TableLimits, std::string> limits_of(const WayBudget& way);
inline constexpr std::size_t kHopsMax = 16;

/// The part of each switch, of tables within limits_of(). Behind the one at which they end parts
/// are empty: such a switch has nothing of the map. Cost: linear.
[[nodiscard]] std::vector<IndexTables> cut_tables(const IndexTables& tables, const WayBudget& way);

/// What each switch is to run with for one map; `generation`: of these tables, and of no others.
[[nodiscard]] std::vector<SwitchProgram> cut_program(const MapKeys& keys, const IndexTables& tables,
                                                     const WayBudget& way,
                                                     std::uint32_t generation);

/// The changes of each switch, whose places are those of its own part. Requires: places of the
/// whole tables. Cost: linear.
[[nodiscard]] std::vector<std::vector<EntryChange>> cut_changes(
    std::span<const EntryChange> changes, const WayBudget& way);

}  // namespace espalier::dataplane
