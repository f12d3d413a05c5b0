// SPDX-License-Identifier: Apache-2.0
// The traversal of a tree by an audit, and what it gathers.
#include "kinds/map/write/audit.hpp"

#include <algorithm>
#include <unordered_set>

#include "kinds/map/write/audit_parts.hpp"
#include "store/store_core.hpp"

namespace espalier::tree {
namespace {

class TreeAudit {
 public:
  TreeAudit(const MapCore& map, Report& report) : map_(map), report_(report) {}

  TreeContent run() {
    report_.set_place("map " + std::to_string(map_.id) + ": ");
    audit_map_header(map_, report_);
    const wire::Ref root = map_.table.get(map_.root);
    if (report_.expect(in_region(map_, root, map_.geometry.node_bytes), "it has no root")) {
      const std::uint32_t level = map_.view(root).level();
      report_.expect(map_.height == level + 1, "its height is said to be ", map_.height.load(),
                     " and the root has level ", level);
      visit({map_.root, root, level, {}, {}});
    }
    report_.set_place("map " + std::to_string(map_.id) + ": ");
    std::sort(content_.lids.begin(), content_.lids.end());
    audit_counters(map_, content_, report_);
    const memory::Reclaimer::Waiting waiting = map_.store.reclaimer.waiting(map_, true);
    audit_lids(map_, waiting, content_, report_);
    audit_waiting(map_, waiting, content_, report_);
    content_.buffers.push_back(
        {map_.header_offset, memory::table_class_of(sizeof(wire::MapHeader))});
    for (const std::uint64_t spare : map_.spare_nodes) {
      content_.buffers.push_back({spare, map_.node_class});
    }
    for (const auto& [offset, size_class] : map_.table.buffers()) {
      content_.buffers.push_back({offset, size_class});
    }
    return std::move(content_);
  }

 private:
  void visit(const NodePlace& place) {
    if (report_.full()) return;
    seen_.insert(place.lid);
    content_.lids.push_back(place.lid);
    content_.buffers.push_back({place.ref.offset(), map_.node_class});
    ++(place.level == 0 ? content_.leaves : content_.interior_nodes);
    NodeAudit audit(map_, place, report_);
    report_.set_place("map " + std::to_string(map_.id) + ", node " + std::to_string(place.lid) +
                      " of level " + std::to_string(place.level) + ": ");
    if (!audit_header(audit)) return;
    if (place.level == 0) {
      visit_leaf(audit);
    } else {
      visit_children(audit);
    }
  }

  void visit_leaf(NodeAudit& audit) {
    const LeafContent leaf = audit_log(audit, audit_sorted(audit));
    content_.items += leaf.items;
    for (const wire::ValueRef& value : leaf.values) {
      if (!audit_value(audit, value)) continue;
      const auto size_class = memory::class_of(sizeof(wire::ValueHeader) + value.bytes);
      content_.buffers.push_back({wire::Ref{value.ref}.offset(), size_class});
      content_.value_bytes += memory::class_bytes(size_class);
    }
  }

  void visit_children(NodeAudit& audit) {
    const std::vector<Child> children = audit_interior(audit);
    std::vector<NodePlace> places;
    for (std::size_t i = 0; i < children.size(); ++i) {
      const wire::Lid lid = children[i].lid;
      const wire::Ref ref = lid_in_range(map_, lid) ? map_.table.get(lid) : wire::Ref{};
      if (!report_.expect(in_region(map_, ref, map_.geometry.node_bytes), "its child ", lid,
                          " is no node") ||
          !report_.expect(!seen_.contains(lid), "its child ", lid, " is in the tree twice")) {
        continue;
      }
      seen_.insert(lid);
      places.push_back({lid, ref, audit.place.level - 1, children[i].separator,
                        i + 1 < children.size() ? children[i + 1].separator : audit.place.high});
    }
    for (const NodePlace& place : places) visit(place);
  }

  const MapCore& map_;
  Report& report_;
  TreeContent content_;
  std::unordered_set<wire::Lid> seen_;
};

}  // namespace

std::vector<std::string> audit(const MapCore& map, std::size_t most) {
  Report report(most);
  TreeContent content = TreeAudit(map, report).run();
  audit_overlaps(content.buffers, report);
  // Other maps of the store may be written meanwhile; a single map must own all used buffers.
  if (map.store.objects.list<MapCore>().size() == 1) audit_pool(map.store, content.buffers, report);
  return report.take();
}

std::vector<std::string> audit_store(const StoreCore& store, std::size_t most) {
  Report report(most);
  std::vector<BufferUse> buffers;
  for (const MapCore* map : store.objects.list<MapCore>()) {
    const TreeContent content = TreeAudit(*map, report).run();
    buffers.insert(buffers.end(), content.buffers.begin(), content.buffers.end());
  }
  report.set_place("store: ");
  audit_overlaps(buffers, report);
  audit_pool(store, buffers, report);
  return report.take();
}

}  // namespace espalier::tree
