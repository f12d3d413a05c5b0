// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/range_borders.hpp"

#include <utility>

#include "base/exposed_epoch.hpp"
#include "kinds/map/node/node_view.hpp"
#include "kinds/map/write/map_core.hpp"
#include "store/thread_context.hpp"

namespace espalier::tree {
namespace {

struct CutRange {
  std::string_view low;
  std::string_view high;  // empty: no end

  [[nodiscard]] bool is_within(std::string_view key) const {
    return compare_keys(key, low) > 0 && (high.empty() || compare_keys(key, high) < 0);
  }
};

/// A node, and where it begins in the range: what its parent says.
struct Branch {
  std::string_view begin;
  wire::Lid lid = 0;
};

// The children of one node that the range touches.
void add_children(const NodeView& node, const Branch& branch, const CutRange& range,
                  std::vector<Branch>& to) {
  const std::uint32_t children = node.children();
  std::uint32_t first = 0;
  for (std::uint32_t i = 1; i < children; ++i) {
    if (compare_keys(node.separator(i), range.low) > 0) break;
    first = i;
  }
  for (std::uint32_t i = first; i < children; ++i) {
    const std::string_view begin = node.separator(i);
    if (i != first && !range.is_within(begin)) break;
    to.push_back({i == first ? branch.begin : begin, node.child(i)});
  }
}

// The nodes of the uppermost level that has as many as are wanted, or of the lowest. What changes
// meanwhile may leave one out, or out of order.
std::vector<Branch> branches_of(const MapCore& map, const CutRange& range, std::uint32_t wanted) {
  std::vector<Branch> level{{range.low, map.root}};
  std::vector<Branch> below;
  while (level.size() < wanted) {
    below.clear();
    for (const Branch& branch : level) {
      const wire::Ref ref = map.ref(branch.lid);
      if (!ref) continue;
      const NodeView node = map.view(ref);
      if (node.leaf() || node.level() == 0) return level;
      add_children(node, branch, range, below);
    }
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
  const base::ExposedEpoch exposed(context.slot);  // separators are read where they lie
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
