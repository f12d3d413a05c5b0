// SPDX-License-Identifier: Apache-2.0
#include "dataplane/index_tables.hpp"

#include <algorithm>
#include <utility>

#include "dataplane/set_lookup.hpp"

namespace espalier::dataplane {
namespace {

// Entries in order, none over another, each within the width and leading to what exists.
bool check_stage(const RangeTables& tables, std::size_t stage, std::uint32_t tables_here,
                 std::uint32_t& tables_below, std::size_t ranges) {
  const std::uint32_t cells = std::uint32_t{1} << tables.bits_per_stage;
  const RangeEntry* before = nullptr;
  for (const RangeEntry& entry : tables.stages[stage]) {
    if (entry.first > entry.last || entry.last >= cells) return false;
    if (entry.table >= tables_here || entry.result >= ranges) return false;
    if (before != nullptr && (before->table > entry.table ||
                              (before->table == entry.table && before->last >= entry.first))) {
      return false;
    }
    if (entry.next != kDone) {
      // Each is led to once, in order, and from one value.
      if (entry.next != tables_below || entry.first != entry.last) return false;
      ++tables_below;
    }
    before = &entry;
  }
  return true;
}

bool check_root(const RangeTables& root, std::size_t ranges) {
  const std::size_t stages = root.stages.size();
  if (stages == 0 || root.bits_per_stage == 0 || root.bits_per_stage > 16) return false;
  if (root.bits_per_stage * stages > 64 || root.preset >= ranges) return false;
  std::uint32_t tables = 1;
  for (std::size_t stage = 0; stage < stages; ++stage) {
    std::uint32_t below = 0;
    if (!check_stage(root, stage, tables, below, ranges)) return false;
    tables = below;
  }
  return tables == 0;
}

bool leads_within(const Way& way, const IndexTables& tables, std::size_t set) {
  if (way.next == kNoNode) return true;
  if (set == tables.sets.size()) return way.next < tables.beyond;
  return way.next < tables.sets[set].size();
}

bool check_node(const SetNode& node) {
  if (node.way_count == 0 || node.way_count > kWaysMax) return false;
  const auto pivots = std::span(node.pivots).first(node.way_count - 1);
  if (std::ranges::adjacent_find(pivots, std::greater_equal{}) != pivots.end()) return false;
  for (std::size_t i = pivots.size(); i < kPivotsMax; ++i) {
    if (node.pivots[i] != ~std::uint64_t{0}) return false;
  }
  for (std::size_t i = node.way_count; i < kWaysMax; ++i) {
    if (node.ways[i] != node.ways[node.way_count - 1]) return false;
  }
  return true;
}

}  // namespace

std::size_t nodes_in_sets(const IndexTables& tables) {
  std::size_t sum = 0;
  for (const NodeSet& set : tables.sets) sum += set.size();
  return sum;
}

namespace {

Found go_down(const IndexTables& tables, Found found, std::uint64_t key) {
  while (found.next != kNoNode && found.sets < tables.sets.size()) {
    const SetNode& node = tables.sets[found.sets][found.next];
    const Way& way = node.ways[way_of(reached_bits(node.pivots, key))];
    found = {way.address, found.sets + 1, way.next};
  }
  return found;
}

}  // namespace

Found find(const IndexTables& tables, std::uint64_t key) {
  const Way& way = tables.ways[find_range(tables.root, key)];
  return go_down(tables, {way.address, 0, way.next}, key);
}

Found find_from(const IndexTables& tables, std::uint32_t cursor, std::uint64_t key) {
  return go_down(tables, {0, 0, cursor}, key);
}

bool check(const IndexTables& tables) {
  const bool has_root = !tables.ways.empty();
  if (!has_root && (tables.root != RangeTables{} || tables.sets.empty())) return false;
  if (has_root && !check_root(tables.root, tables.ways.size())) return false;
  const auto good = [&tables](std::size_t set) {
    return [&tables, set](const Way& way) { return leads_within(way, tables, set); };
  };
  if (!std::ranges::all_of(tables.ways, good(0))) return false;
  for (std::size_t set = 0; set < tables.sets.size(); ++set) {
    for (const SetNode& node : tables.sets[set]) {
      if (!check_node(node) || !std::ranges::all_of(node.ways, good(set + 1))) return false;
    }
  }
  return true;
}

}  // namespace espalier::dataplane
