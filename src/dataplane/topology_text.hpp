// SPDX-License-Identifier: Apache-2.0
// A topology as text (docs/formats/topology.md): switches with their room, links between them, and
// the nodes behind them. The way to each node is the shortest one from the switch with the fat
// roots; it must be the only one of its length, for tables are cut over the switches of a way.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/table_text.hpp"
#include "dataplane/way_tables.hpp"

namespace espalier::dataplane {

struct Topology {
  struct Switch {
    std::string name;
    std::string control;  ///< the socket at which it takes tables
  };
  std::vector<Switch> switches;
  std::vector<std::string> nodes;  ///< their addresses, by their numbers
  TopologyBudget budget;           ///< of these switches; limits_of() takes it
};

/// No more switches, and no more nodes, fit.
inline constexpr std::size_t kTopologySwitchesMax = 256;
inline constexpr std::size_t kTopologyNodesMax = SwitchProgram::kMapsMax;

/// Cost: linear for each node.
[[nodiscard]] std::expected<Topology, TextFault> parse_topology(std::string_view text);

}  // namespace espalier::dataplane
