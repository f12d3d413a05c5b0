// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/estimate.hpp"

#include "kinds/map/node/leaf_search.hpp"
#include "kinds/map/walk/next_step.hpp"
#include "kinds/map/write/audit.hpp"
#include "kinds/map/write/map_core.hpp"
#include "store/thread_context.hpp"

namespace espalier::tree {
namespace {

// Far more than the height of any tree.
constexpr std::uint32_t kNodesMax = 64;

}  // namespace

double estimate_rank(const MapCore& map, const SearchKey& key) {
  double below = 0;  // share of the map's items left of the path
  double share = 1;  // of the current subtree
  Cursor cursor;
  cursor.read_version = kNewest;
  cursor.key = key;
  wire::Ref ref = map.root_ref();
  // If the tree changes meanwhile, the estimate so far is as good.
  for (std::uint32_t nodes = 0; ref && nodes < kNodesMax; ++nodes) {
    const NodeView node = map.view(ref);
    const Step step = next_step(map, cursor, node, NodeHead::read(node.bytes()), ref);
    if (step.kind == StepKind::leaf) {
      const auto end = static_cast<double>(node.sorted_end() - map.geometry.sorted_begin);
      const Position at = lower_bound(node, key, probe_leaf(node, key, map.kit));
      const auto before = static_cast<double>(at.offset - map.geometry.sorted_begin);
      if (end > 0) below += share * before / end;
      break;
    }
    ref = step.ref;
    if (step.kind != StepKind::child) continue;
    share /= node.children();
    below += share * step.child;
    ref = map.ref(step.lid);
  }
  return below * static_cast<double>(map.items.sum());
}

Result<std::uint64_t> estimate_range(ThreadContext& context, const MapCore& map,
                                     std::string_view low, std::string_view high) {
  const std::uint32_t most = map.geometry.key_bytes_max;
  if (low.size() > most || high.size() > most) return fail(Code::key_too_long, most);
  SearchKey key;
  context.slot.enter();
  double below_high = static_cast<double>(map.items.sum());
  if (!high.empty()) {
    key.assign(high);
    below_high = estimate_rank(map, key);
  }
  double below_low = 0;
  if (!low.empty()) {
    key.assign(low);
    below_low = estimate_rank(map, key);
  }
  context.slot.exit();
  return below_high > below_low ? static_cast<std::uint64_t>(below_high - below_low + 0.5) : 0;
}

}  // namespace espalier::tree
