// SPDX-License-Identifier: Apache-2.0
// The tables of a switch: the one data model that the compiler produces, the packet function walks,
// text and P4 entries are written from, and the controller updates entry by entry.
//
//   fat root   range tables -> the number of a range -> ways[number]
//   sets       of one layer each: a node has up to 15 pivots and up to 16 ways
//   way        the address that a READ goes to, and the node of the next set that refines it
//
// A lookup begins at the fat root and passes through one set after another. It keeps the address of
// the last way that it took: where the tables end, that is the lowest node that they know.
//
// The tables of a map may be cut over the switches of a way, layer by layer (way_tables.hpp): the
// first one has the fat root, each has some sets in a row, and the last ways of a part lead to
// nodes of the next part's first set, which is `beyond` its own. A part behind the first has no fat
// root: its lookups begin at a node of its first set, the cursor.
//
// How a set compares (set_lookup.hpp): each pivot in two halves of 32 bits, which gives a bit each,
// ones for all pivots up to the key and zeros behind them; these bits choose the way.
//
// Thread: any while it is not changed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/range_tables.hpp"

namespace espalier::dataplane {

/// Ways of a node of a set, one more than its pivots.
inline constexpr std::size_t kWaysMax = 16;
inline constexpr std::size_t kPivotsMax = kWaysMax - 1;
/// In the place of a node: no set knows better.
inline constexpr std::uint32_t kNoNode = 0xFFFF'FFFF;

struct Way {
  std::uint64_t address = 0;
  std::uint32_t next = kNoNode;  // a node of the next set
  friend bool operator==(const Way&, const Way&) = default;
};

struct SetNode {
  /// Ascending; behind the last one all are the largest number, and the ways behind the last one
  /// are the last way, so that a key that reaches these pivots goes where it should.
  std::array<std::uint64_t, kPivotsMax> pivots{};
  std::array<Way, kWaysMax> ways{};
  std::uint32_t way_count = 0;
  friend bool operator==(const SetNode&, const SetNode&) = default;
};

using NodeSet = std::vector<SetNode>;

struct IndexTables {
  RangeTables root;
  std::vector<Way> ways;
  std::vector<NodeSet> sets;
  std::uint32_t beyond = 0;  // nodes of the set that follows in the next switch
  friend bool operator==(const IndexTables&, const IndexTables&) = default;
};

/// Nodes in all sets.
[[nodiscard]] std::size_t nodes_in_sets(const IndexTables& tables);

struct Found {
  std::uint64_t address = 0;
  std::uint32_t sets = 0;        // that took part
  std::uint32_t next = kNoNode;  // a node beyond these tables that knows better
  friend bool operator==(const Found&, const Found&) = default;
};

/// The address for a key. Requires: tables that check() accepts, with a fat root. Cost: a binary
/// search in each stage of the fat root, 15 comparisons in each set.
[[nodiscard]] Found find(const IndexTables& tables, std::uint64_t key);
/// The same from a node of the first set on. Requires: it exists.
[[nodiscard]] Found find_from(const IndexTables& tables, std::uint32_t cursor, std::uint64_t key);

/// Whether no lookup can leave the tables: numbers of ranges, nodes and sub-tables exist, entries
/// and pivots are in order. Without a fat root they are good if they have sets. Cost: linear.
[[nodiscard]] bool check(const IndexTables& tables);

}  // namespace espalier::dataplane
