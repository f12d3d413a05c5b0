// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/range_borders.hpp"

#include <algorithm>
#include <utility>

#include "base/exposed_epoch.hpp"
#include "kinds/map/node/node_view.hpp"
#include "kinds/map/write/map_core.hpp"
#include "store/thread_context.hpp"

namespace espalier::tree {
namespace {

struct CutRange {
  std::string_view low;
  std::string_view high;  // empty: unbounded

  [[nodiscard]] bool is_within(std::string_view key) const {
    return compare_keys(key, low) > 0 && (high.empty() || compare_keys(key, high) < 0);
  }
};

/// A node and its begin in the range, as given by its parent.
struct Branch {
  std::string_view begin;
  wire::Lid lid = 0;
};

/// The children of a node that overlap the range.
struct Touched {
  NodeView node;
  std::string_view begin;  // begin of the first one in the range
  std::uint32_t first = 0;
  std::uint32_t end = 0;
};

// Partition point: the first index from `i` on for which `holds` is false.
template <class Holds>
std::uint32_t first_without(std::uint32_t i, std::uint32_t end, const Holds& holds) {
  while (i < end) {
    const std::uint32_t middle = i + (end - i) / 2;
    if (holds(middle)) {
      i = middle + 1;
    } else {
      end = middle;
    }
  }
  return i;
}

Touched touched_of(const NodeView& node, const Branch& branch, const CutRange& range) {
  const std::uint32_t children = node.children();
  const std::uint32_t above = first_without(1, children, [&](std::uint32_t i) {
    return compare_keys(node.separator(i), range.low) <= 0;
  });
  const std::uint32_t end = first_without(
      above, children, [&](std::uint32_t i) { return range.is_within(node.separator(i)); });
  return {node, branch.begin, above - 1, std::min(end, children)};
}

// Samples every n-th child of all nodes, so that about `most` remain.
std::vector<Branch> branches_below(const std::vector<Touched>& nodes, std::size_t most) {
  std::size_t all = 0;
  for (const Touched& each : nodes) all += each.end - each.first;
  const std::size_t stride = (all + most - 1) / most;
  std::vector<Branch> below;
  std::size_t next = 0;  // children to skip until the next sample
  for (const Touched& each : nodes) {
    const std::size_t count = each.end - each.first;
    for (; next < count; next += stride) {
      const std::uint32_t child = each.first + static_cast<std::uint32_t>(next);
      below.push_back(
          {next == 0 ? each.begin : each.node.separator(child), each.node.child(child)});
    }
    next -= count;
  }
  return below;
}

// The nodes of the uppermost level with at least `wanted` nodes, else of the lowest. Concurrent
// changes may leave one out, or out of order.
std::vector<Branch> branches_of(const MapCore& map, const CutRange& range, std::uint32_t wanted) {
  constexpr std::size_t kSamples = 16;  // per part: enough for parts of similar size
  std::vector<Branch> level{{range.low, map.root}};
  std::vector<Touched> nodes;
  while (level.size() < wanted) {
    nodes.clear();
    for (const Branch& branch : level) {
      const wire::Ref ref = map.ref(branch.lid);
      if (!ref) continue;
      const NodeView node = map.view(ref);
      if (node.leaf() || node.level() == 0) return level;
      nodes.push_back(touched_of(node, branch, range));
    }
    std::vector<Branch> below = branches_below(nodes, kSamples * wanted);
    if (below.empty()) return level;
    level.swap(below);
  }
  return level;
}

}  // namespace

std::vector<std::string> range_borders(ThreadContext& context, const MapCore& map,
                                       std::string_view low, std::string_view high,
                                       std::uint32_t parts) {
  std::vector<std::string> borders;
  const std::uint32_t most = map.geometry.key_bytes_max;
  const bool empty = !high.empty() && compare_keys(low, high) >= 0;
  if (parts < 2 || empty || low.size() > most || high.size() > most) return borders;
  const CutRange range{low, high};
  const base::ExposedEpoch exposed(context.slot);  // separators are read in place
  const std::vector<Branch> branches = branches_of(map, range, parts);
  const std::size_t cuts = std::min<std::size_t>(parts, branches.size());
  for (std::size_t i = 1; i < cuts; ++i) {
    const std::string_view border = branches[i * branches.size() / cuts].begin;
    const bool ascends = borders.empty() || compare_keys(border, borders.back()) > 0;
    if (ascends && range.is_within(border)) borders.emplace_back(border);
  }
  return borders;
}

}  // namespace espalier::tree
