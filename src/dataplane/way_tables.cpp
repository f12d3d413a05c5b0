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

namespace {

/// Brings the layers of all ways together: of each the group of each tree.
class LayerWriter {
 public:
  explicit LayerWriter(const TopologyBudget& of)
      : of_(of), begins_(of.switches.size(), LayerBudget::kNoGroup) {}

  /// Returns what is wrong, or nothing.
  std::string add(std::size_t tree) {
    std::size_t layer = 0;
    std::vector<bool> passed(of_.switches.size(), false);
    for (const std::size_t number : of_.ways[tree]) {
      if (passed[number]) return "a way leads through a switch twice";
      passed[number] = true;
      std::size_t& begin = begins_[number];
      if (begin == LayerBudget::kNoGroup) begin = layer;
      if (begin != layer) return "ways come to a switch at different layers";
      for (std::size_t set = 0; set < of_.switches[number].sets; ++set) {
        add(tree, layer++, number);
      }
    }
    return "";
  }
  std::vector<LayerBudget> take() { return std::move(layers_); }

 private:
  void add(std::size_t tree, std::size_t layer, std::size_t number) {
    if (layer == layers_.size()) {
      layers_.push_back({std::vector(of_.ways.size(), LayerBudget::kNoGroup), {}});
      switches_.emplace_back();
    }
    auto& known = switches_[layer];
    const auto at = std::ranges::find(known, number);
    layers_[layer].group_of[tree] = static_cast<std::size_t>(at - known.begin());
    if (at != known.end()) return;
    known.push_back(number);
    layers_[layer].nodes.push_back(of_.switches[number].nodes_per_set);
  }

  const TopologyBudget& of_;
  std::vector<std::size_t> begins_;  // the layer at which ways come to each switch
  std::vector<LayerBudget> layers_;
  std::vector<std::vector<std::size_t>> switches_;  // of each group of each layer
};

}  // namespace

WayBudget way_to(const TopologyBudget& topology, std::size_t node) {
  WayBudget way{.ranges = topology.ranges, .hops = {}};
  for (const std::size_t number : topology.ways[node]) {
    way.hops.push_back(topology.switches[number]);
  }
  return way;
}

std::expected<ForestLimits, std::string> limits_of(const TopologyBudget& topology) {
  if (topology.ways.empty()) return std::unexpected("there is no way to a node");
  if (topology.ranges < topology.ways.size()) {
    return std::unexpected("each node takes a range of the fat root at least");
  }
  LayerWriter layers(topology);
  for (std::size_t node = 0; node < topology.ways.size(); ++node) {
    const auto& way = topology.ways[node];
    if (way.empty()) return std::unexpected("a way has a switch");
    if (way.front() != topology.ways.front().front()) {
      return std::unexpected("ways begin at different switches");
    }
    if (std::ranges::any_of(way, [&](auto at) { return at >= topology.switches.size(); })) {
      return std::unexpected("a way leads through a switch that there is not");
    }
    // First of all: it bounds what is written down for each layer.
    if (const auto limits = limits_of(way_to(topology, node)); !limits) {
      return std::unexpected(limits.error());
    }
    if (std::string wrong = layers.add(node); !wrong.empty()) {
      return std::unexpected(std::move(wrong));
    }
  }
  return ForestLimits{.ranges = topology.ranges, .layers = layers.take()};
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
                                       const WayBudget& way, std::uint32_t generation,
                                       const HintTerms& hints) {
  std::vector<IndexTables> parts = cut_tables(tables, way);
  std::vector<SwitchProgram> programs(parts.size());
  std::uint8_t behind = 0;
  for (std::size_t hop = parts.size(); hop-- != 0;) {
    if (hop != 0 && parts[hop].sets.empty()) continue;
    const bool added =
        programs[hop].add({keys, std::move(parts[hop]), TablesPart{generation, behind}, hints});
    ESPALIER_ASSERT(added);
    ++behind;
  }
  return programs;
}

std::vector<SwitchProgram> cut_program(std::span<const MapKeys> keys,
                                       std::span<const IndexTables> tables,
                                       const TopologyBudget& topology, std::uint32_t generation,
                                       std::span<const HintTerms> hints) {
  ESPALIER_ASSERT(keys.size() == topology.ways.size() && tables.size() == keys.size());
  ESPALIER_ASSERT(hints.empty() || hints.size() == keys.size());
  std::vector<SwitchProgram> programs(topology.switches.size());
  for (std::size_t node = 0; node < keys.size(); ++node) {
    ESPALIER_ASSERT(keys[node].node == node);
    const auto parts = cut_program(keys[node], tables[node], way_to(topology, node), generation,
                                   hints.empty() ? HintTerms{} : hints[node]);
    for (std::size_t hop = 0; hop < parts.size(); ++hop) {
      for (const SwitchMap& map : parts[hop].maps()) {
        const bool added = programs[topology.ways[node][hop]].add(map);
        ESPALIER_ASSERT(added);
      }
    }
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

std::vector<std::vector<EntryChange>> cut_changes(std::span<const EntryChange> changes,
                                                  const TopologyBudget& topology) {
  std::vector<std::vector<EntryChange>> parts(topology.switches.size());
  for (const EntryChange& change : changes) {
    const auto of_way = cut_changes({&change, 1}, way_to(topology, change.node));
    for (std::size_t hop = 0; hop < of_way.size(); ++hop) {
      auto& into = parts[topology.ways[change.node][hop]];
      into.insert(into.end(), of_way[hop].begin(), of_way[hop].end());
    }
  }
  return parts;
}

}  // namespace espalier::dataplane
