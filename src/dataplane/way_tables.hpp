// SPDX-License-Identifier: Apache-2.0
// The tables of a map over the switches of a way, from the clients to the node: the fat root in the
// first one, and of the sets of nodes so many in each as it has room for. They are compiled as one
// and cut, so that a READ that passes all of them goes where one switch with all tables would send
// it. A map that lies on several nodes has a way to each, which part behind the switch with the fat
// roots: they are compiled together, and compete for what their ways have in common.
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

/// Switches, the ways to nodes through them, and the ranges of all fat roots.
struct TopologyBudget {
  std::size_t ranges = TableLimits{}.ranges;
  std::vector<HopBudget> switches;
  /// To each node: the switches with tables that its READs pass, from the one with the fat roots
  /// on, which is the same for all.
  std::vector<std::vector<std::size_t>> ways;
};

/// What they hold together; or a sentence that says why no tables can be cut so: no node, more
/// nodes than ranges, a switch that does not exist, twice the same one in a way, ways that do not
/// begin at one switch or come to one at different layers; else as limits_of() of a way.
[[nodiscard]] std::expected<ForestLimits, std::string> limits_of(const TopologyBudget& topology);
/// Requires: there is such a node.
[[nodiscard]] WayBudget way_to(const TopologyBudget& topology, std::size_t node);

/// The part of each switch, of tables within limits_of(). Behind the one at which they end parts
/// are empty: such a switch has nothing of the map. Cost: linear.
[[nodiscard]] std::vector<IndexTables> cut_tables(const IndexTables& tables, const WayBudget& way);

/// What each switch is to run with for one map; `generation`: of these tables, and of no others.
[[nodiscard]] std::vector<SwitchProgram> cut_program(const MapKeys& keys, const IndexTables& tables,
                                                     const WayBudget& way, std::uint32_t generation,
                                                     const HintTerms& hints = {});

/// The same of tables of each node, within limits_of(): what each switch is to run with. Requires:
/// as many keys and tables as ways; keys that name the nodes 0, 1, 2 ...; no hints, or as many.
[[nodiscard]] std::vector<SwitchProgram> cut_program(std::span<const MapKeys> keys,
                                                     std::span<const IndexTables> tables,
                                                     const TopologyBudget& topology,
                                                     std::uint32_t generation,
                                                     std::span<const HintTerms> hints = {});

/// The changes of each switch, whose places are those of its own part. Requires: places of the
/// whole tables. Cost: linear.
[[nodiscard]] std::vector<std::vector<EntryChange>> cut_changes(
    std::span<const EntryChange> changes, const WayBudget& way);
/// The same, by the nodes that they are of.
[[nodiscard]] std::vector<std::vector<EntryChange>> cut_changes(
    std::span<const EntryChange> changes, const TopologyBudget& topology);

}  // namespace espalier::dataplane
