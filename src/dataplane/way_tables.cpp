// SPDX-License-Identifier: Apache-2.0
#include "dataplane/way_tables.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace espalier::dataplane {
namespace {

std::uint32_t nodes_of(const IndexTables& tables, std::size_t set) {
  return set < tables.sets.size() ? static_cast<std::uint32_t>(tables.sets[set].size()) : 0;
}

}  // namespace

std::expected<TableLimits, std::string> limits_of(const WayBudget& way) {
  if (way.hops.empty()) return std::unexpected("a way has a switch");
  if (way.hops.size() > kHopsMax) {
    return std::unexpected("a way has at most " + std::to_string(kHopsMax) + " switches");
  }
  TableLimits limits{.ranges = way.ranges, .sets = 0};
  for (const HopBudget& hop : way.hops) {
    if (hop.sets > limits.nodes_of_set.size() - limits.sets) {
      return std::unexpected("all switches of a way have at most " +
                             std::to_string(limits.nodes_of_set.size()) + " sets together");
    }
    const auto begin = limits.nodes_of_set.begin() + static_cast<std::ptrdiff_t>(limits.sets);
    std::fill_n(begin, hop.sets, hop.nodes_per_set);
    limits.sets += hop.sets;
  }
  return limits;
}

std::vector<IndexTables> cut_tables(const IndexTables& tables, const WayBudget& way) {
  std::vector<IndexTables> parts(way.hops.size());
  ESPALIER_ASSERT(!parts.empty() && tables.beyond == 0);
  parts.front().root = tables.root;
  parts.front().ways = tables.ways;
  std::size_t end = 0;
  for (std::size_t hop = 0; hop < parts.size(); ++hop) {
    const std::size_t begin = end;
    end = std::min(begin + way.hops[hop].sets, tables.sets.size());
    const auto first = tables.sets.begin() + static_cast<std::ptrdiff_t>(begin);
    parts[hop].sets.assign(first, first + static_cast<std::ptrdiff_t>(end - begin));
    // A switch without sets behind the first has no tables, and lets shims pass.
    if (hop == 0 || end != begin) parts[hop].beyond = nodes_of(tables, end);
  }
  ESPALIER_ASSERT(end == tables.sets.size());
  return parts;
}

std::vector<SwitchProgram> cut_program(const MapKeys& keys, const IndexTables& tables,
                                       const WayBudget& way, std::uint32_t generation) {
  std::vector<IndexTables> parts = cut_tables(tables, way);
  std::vector<SwitchProgram> programs(parts.size());
  std::uint8_t behind = 0;
  for (std::size_t hop = parts.size(); hop-- != 0;) {
    if (hop != 0 && parts[hop].sets.empty()) continue;
    const bool added =
        programs[hop].add({keys, std::move(parts[hop]), TablesPart{generation, behind}});
    ESPALIER_ASSERT(added);
    ++behind;
  }
  return programs;
}

std::vector<std::vector<EntryChange>> cut_changes(std::span<const EntryChange> changes,
                                                  const WayBudget& way) {
  std::vector<std::vector<EntryChange>> parts(way.hops.size());
  for (EntryChange change : changes) {
    std::size_t hop = 0;
    if (change.place.set != EntryPlace::kRoot) {
      for (; change.place.set >= way.hops[hop].sets; ++hop) {
        change.place.set -= static_cast<std::uint32_t>(way.hops[hop].sets);
      }
    }
    parts[hop].push_back(change);
  }
  return parts;
}

}  // namespace espalier::dataplane
