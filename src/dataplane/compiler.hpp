// SPDX-License-Identifier: Apache-2.0
// Compiles a tree and its access counts into the tables of switches.
//
// Thread: any.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "dataplane/index_tables.hpp"
#include "dataplane/node_sets.hpp"
#include "dataplane/tree_image.hpp"

namespace espalier::dataplane {

/// Capacities of the tables; the defaults are those of [Fat-B+Tree §V-B].
struct TableLimits {
  std::size_t ranges = 600;  // of the fat root
  std::size_t sets = 3;      // layers of nodes below it
  std::size_t nodes_per_set = 3600;
  std::size_t ways = kWaysMax;  // of a node; wider ones are cut; 2 to kWaysMax
  /// Nodes of the first sets, where one has another budget than the others; 0: nodes_per_set.
  std::array<std::size_t, 8> nodes_of_set{};

  [[nodiscard]] constexpr std::size_t nodes_in(std::size_t set) const {
    const bool own = set < nodes_of_set.size() && nodes_of_set[set] != 0;
    return own ? nodes_of_set[set] : nodes_per_set;
  }
};

/// The place of an entry: where an address changes, only the entries that name it do.
struct EntryPlace {
  static constexpr std::uint32_t kRoot = 0xFFFF'FFFF;
  std::uint32_t set = kRoot;  // else the number of a set
  std::uint32_t node = 0;     // of the set; of the fat root: the way
  std::uint32_t way = 0;      // of the node
  friend bool operator==(const EntryPlace&, const EntryPlace&) = default;
};

struct Compiled {
  IndexTables tables;
  std::size_t merged = 0;  // nodes in the fat root; of one that was cut, each piece counts
};

/// Compiles the tables of a tree. A lookup in them ends at a node on the path from the root to the
/// leaf of its key, or at a leaf. Requires: a tree with a root; limits.ranges >= 1, ways as stated.
/// Cost: linear in the nodes of the tree, n log n in those that go into tables.
[[nodiscard]] Compiled compile(const TreeImage& tree, const TableLimits& limits);

/// Capacities that several trees share: those of a map that lies on several nodes.
struct ForestLimits {
  std::size_t ranges = 600;         // of all fat roots, which lie in one switch
  std::vector<LayerBudget> layers;  // below them
  std::size_t ways = kWaysMax;      // as of TableLimits
};
/// The tables of each tree; all trees compete for the shared capacity. Requires: as compile(); a
/// range for each tree at least, and a group in each layer.
[[nodiscard]] std::vector<Compiled> compile(std::span<const TreeImage> trees,
                                            const ForestLimits& limits);

/// Every entry that names this address. Cost: linear in the tables.
[[nodiscard]] std::vector<EntryPlace> places_of(const IndexTables& tables, std::uint64_t address);

/// Makes an entry name another address: what a node that moved needs. Requires: the place exists.
/// A node of a set keeps its last way repeated behind it (index_tables.hpp).
void set_address(IndexTables& tables, const EntryPlace& place, std::uint64_t address);

}  // namespace espalier::dataplane
