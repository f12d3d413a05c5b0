// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/change.hpp"

#include <algorithm>
#include <new>

#include "base/assert.hpp"
#include "base/try_reserve.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"
#include "kinds/map/walk/next_step.hpp"
#include "store/store_core.hpp"

namespace espalier::tree {

std::byte* find_leaf(const MapCore& map, const SearchKey& key, Path& path) {
  Cursor cursor;
  cursor.goal = Goal::write;
  cursor.read_version = kNewest;
  cursor.key = key;
  wire::Ref ref;
  for (;;) {
    if (!ref) {
      path.clear();
      ref = map.root_ref();
    }
    std::byte* at = map.at(ref.offset());
    const Step step = next_step(map, cursor, NodeView(at, map.geometry), NodeHead::read(at), ref);
    switch (step.kind) {
      case StepKind::leaf: return at;
      case StepKind::child:
        path.push_back({at, step.child});
        ref = map.ref(step.lid);
        break;
      // A leaf whose log was merged meanwhile names its successor, which is the same child.
      default: ref = step.ref; break;
    }
  }
}

Change::~Change() {
  context_->retired_taken -= retired_taken_;
  if (!committed_) {
    for (std::size_t i = links_.size(); i-- > 0;) {
      set_link(links_[i].at, links_[i].field, links_[i].before);
    }
    for (const NewNode& node : built_) {
      stock_.push_back(node.node);  // it came from there, so there is room
      if (node.fresh_lid) map_->table.release(node.lid);
    }
  }
  give_back();
}

void Change::give_back() noexcept {
  {
    const std::lock_guard lock(map_->spare_mutex);
    while (!stock_.empty() && map_->spare_nodes.size() < MapCore::kSpareNodes) {
      map_->spare_nodes.push_back(static_cast<std::uint64_t>(stock_.back() - map_->base));
      stock_.pop_back();
    }
  }
  for (const std::byte* buffer : stock_) {
    context_->cache.release(static_cast<std::uint64_t>(buffer - map_->base), map_->node_class);
  }
  stock_.clear();
}

Result<void> Change::reserve(std::uint32_t nodes, std::uint32_t lids, bool erase) {
  base::reserve_more(stock_, nodes - std::min<std::size_t>(nodes, stock_.size()));
  while (stock_.size() < nodes) {
    if (const auto offset = context_->cache.allocate(map_->node_class)) {
      stock_.push_back(map_->at(*offset));
      continue;
    } else if (!erase) {
      return std::unexpected(offset.error());
    }
    const std::lock_guard lock(map_->spare_mutex);
    if (map_->spare_nodes.empty()) return fail(Code::out_of_memory);
    stock_.push_back(map_->at(map_->spare_nodes.back()));
    map_->spare_nodes.pop_back();
    map_->spares_taken.store(true, std::memory_order_relaxed);
  }
  constexpr std::uint32_t kSpareLids = 128;
  return map_->table.reserve(lids + (erase ? 0 : kSpareLids));
}

void Change::expect(std::size_t built, std::size_t dead) {
  base::reserve_more(built_, built);
  base::reserve_more(dead_, dead);
}

std::byte* Change::take_buffer() {
  ESPALIER_ASSERT(!stock_.empty());
  std::byte* buffer = stock_.back();
  stock_.pop_back();
  return buffer;
}

namespace {

bool overlaps(const NodeView& node, std::string_view low, std::string_view high) {
  const bool before = node.has_high_fence() && compare_keys(node.high_fence(), low) <= 0;
  const bool behind = !high.empty() && compare_keys(high, node.low_fence()) <= 0;
  return !before && !behind;
}

// The separator of two leaves if the second begins with record `at`.
std::string_view separator_before(std::span<const Record> records, std::size_t at) {
  return shortest_separator(records[at - 1].key_view(), records[at].key_view());
}

}  // namespace

bool Change::two_predecessors_at_most(std::span<std::byte* const> olds,
                                      std::span<const Record> records,
                                      std::span<const std::size_t> cuts, const Geometry& g) {
  std::string_view low = NodeView(olds.front(), g).low_fence();
  for (std::size_t i = 0; i < cuts.size() && olds.size() > 2; ++i) {
    const bool last = i + 1 == cuts.size();
    const std::string_view high =
        last ? NodeView(olds.back(), g).high_fence() : separator_before(records, cuts[i + 1]);
    const auto predecessors = std::count_if(olds.begin(), olds.end(), [&](const std::byte* old) {
      return overlaps(NodeView(old, g), low, high);
    });
    if (predecessors > 2) return false;
    low = high;
  }
  return true;
}

// Names the predecessors of [low, high): the one or two old nodes that answer at earlier versions.
NodeFrame Change::frame_for(std::span<std::byte* const> olds, std::string_view low,
                            std::string_view high) const {
  NodeFrame frame;
  frame.map_id = map_->id;
  frame.low = low;
  frame.high = high;
  if (!map_->options.versions || planted(Bug::no_predecessor)) return frame;
  for (std::byte* old : olds) {
    const NodeView node = view(old);
    if (!overlaps(node, low, high)) continue;
    if (!frame.old_ref) {
      frame.old_ref = map_->ref_of(old);
      continue;
    }
    ESPALIER_ASSERT(!frame.old2_ref);
    if (!planted(Bug::one_predecessor_of_two)) {
      frame.old2_ref = map_->ref_of(old);
      frame.old2_low_key_prefix = node.low_key_prefix();
    }
  }
  return frame;
}

void Change::link_neighbours(std::span<std::byte* const> olds, std::span<const wire::Lid> lids) {
  // Neighbours are hints: if one is rebuilt concurrently, the store is lost, and a scan walks
  // again.
  const wire::Lid left = view(olds.front()).left();
  const wire::Lid right = view(olds.back()).right();
  const auto set = [&](wire::Lid at, std::size_t field, wire::Lid before, wire::Lid to) {
    if (at == 0) return;
    links_.push_back({at, field, before});
    set_link(at, field, to);
  };
  set(left, offsetof(wire::NodeHeader, right), view(olds.front()).lid(), lids.front());
  set(right, offsetof(wire::NodeHeader, left), view(olds.back()).lid(), lids.back());
}

void Change::set_link(wire::Lid at, std::size_t field, wire::Lid to) {
  if (const wire::Ref ref = map_->table.get(at)) {
    base::store_shared<wire::Lid>(map_->at(ref.offset()) + field, to);
  }
}

std::vector<Child> Change::replace_leaves(std::span<std::byte* const> olds,
                                          std::span<const Record> records,
                                          std::span<const std::size_t> cuts) {
  const NodeView first = view(olds.front());
  const std::string_view outer_high = view(olds.back()).high_fence();
  const bool in_place = olds.size() == 1 && cuts.size() == 1;
  std::vector<wire::Lid> lids(cuts.size());
  std::vector<Child> children;
  children.reserve(cuts.size());
  expect(cuts.size(), olds.size());
  base::reserve_more(links_, 2);
  for (wire::Lid& lid : lids) lid = in_place ? first.lid() : map_->table.allocate();
  std::string_view low = first.low_fence();
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const bool last = i + 1 == cuts.size();
    const std::size_t end = last ? records.size() : cuts[i + 1];
    const std::string_view high = last ? outer_high : separator_before(records, end);
    NodeFrame frame = frame_for(olds, low, high);
    frame.lid = lids[i];
    frame.left = i == 0 ? first.left() : lids[i - 1];
    frame.right = last ? view(olds.back()).right() : lids[i + 1];
    std::byte* buffer = take_buffer();
    frame.self = map_->ref_of(buffer);
    build_leaf(buffer, map_->geometry, records.subspan(cuts[i], end - cuts[i]), frame);
    built_.push_back({buffer, 0, lids[i], !in_place});
    children.push_back({low, lids[i]});
    low = high;
  }
  for (std::byte* old : olds) {
    const wire::Lid lid = view(old).lid();
    dead_.push_back({old, in_place || lid == map_->root ? 0 : lid});
  }
  if (in_place) return {};
  link_neighbours(olds, lids);
  return children;
}

std::vector<Child> Change::build_layer(std::uint32_t level, std::span<const Child> children,
                                       std::string_view low, std::string_view high,
                                       std::span<std::byte* const> olds) {
  std::vector<Child> layer;
  for (std::size_t parts = 1;; ++parts) {
    const std::size_t per_part = (children.size() + parts - 1) / parts;
    ESPALIER_ASSERT(per_part >= 1);
    bool fit = true;
    for (std::size_t at = 0; at < children.size() && fit; at += per_part) {
      const std::size_t count = std::min(per_part, children.size() - at);
      const bool last = at + count == children.size();
      fit = interior_fits(map_->geometry, children.subspan(at, count),
                          at == 0 ? low : children[at].separator,
                          last ? high : children[at + count].separator);
    }
    if (!fit) continue;
    expect(parts, 0);
    layer.reserve(parts);
    for (std::size_t at = 0; at < children.size(); at += per_part) {
      const std::size_t count = std::min(per_part, children.size() - at);
      const bool last = at + count == children.size();
      const std::string_view part_low = at == 0 ? low : children[at].separator;
      NodeFrame frame = frame_for(olds, part_low, last ? high : children[at + count].separator);
      frame.lid = map_->table.allocate();
      std::byte* buffer = take_buffer();
      frame.self = map_->ref_of(buffer);
      build_interior(buffer, map_->geometry, level, children.subspan(at, count), frame);
      built_.push_back({buffer, level, frame.lid, true});
      layer.push_back({part_low, frame.lid});
    }
    return layer;
  }
}

// Replaces the children of a node, which keeps its LID.
void Change::rebuild(std::byte* node, std::span<const Child> children) {
  expect(1, 1);
  const NodeView old = view(node);
  NodeFrame frame = frame_for({&node, 1}, old.low_fence(), old.high_fence());
  frame.lid = old.lid();
  std::byte* buffer = take_buffer();
  frame.self = map_->ref_of(buffer);
  build_interior(buffer, map_->geometry, old.level(), children, frame);
  built_.push_back({buffer, old.level(), frame.lid, false});
  dead_.push_back({node, 0});
}

// The root keeps its LID: its children move into new nodes below it.
void Change::grow_root(std::byte* root, std::span<const Child> children) {
  const bool leaf = view(root).leaf();
  std::uint32_t level = leaf ? 1 : view(root).level();
  std::vector<Child> layer(children.begin(), children.end());
  while (!interior_fits(map_->geometry, layer, {}, {})) {
    layer = build_layer(level++, layer, {}, {}, {&root, 1});
  }
  expect(1, 1);
  NodeFrame frame = frame_for({&root, 1}, {}, {});
  if (planted(Bug::root_without_predecessor)) frame.old_ref = {};
  frame.lid = map_->root;
  std::byte* buffer = take_buffer();
  frame.self = map_->ref_of(buffer);
  build_interior(buffer, map_->geometry, level, layer, frame);
  built_.push_back({buffer, level, frame.lid, false});
  if (!leaf) dead_.push_back({root, 0});
}

// The root's only child, which this change built, replaces the root.
void Change::collapse_root(std::byte* root, const Child& child) {
  const auto found = std::find_if(built_.begin(), built_.end(),
                                  [&](const NewNode& node) { return node.lid == child.lid; });
  ESPALIER_ASSERT(found != built_.end() && found->fresh_lid);
  expect(0, 1);
  NodeFrame frame = frame_for({&root, 1}, {}, {});
  if (planted(Bug::root_without_predecessor)) frame.old_ref = {};
  base::store_shared<wire::Lid>(found->node + offsetof(wire::NodeHeader, lid), map_->root);
  base::store_shared(found->node + offsetof(wire::NodeHeader, old_ref), frame.old_ref.bits);
  base::store_shared<std::uint64_t>(found->node + offsetof(wire::NodeHeader, old2_ref), 0);
  map_->table.release(found->lid);
  found->lid = map_->root;
  found->fresh_lid = false;
  dead_.push_back({root, 0});
}

// Merges a parent that has become too empty with a neighbour of its level. False: it has none.
bool Change::merge_with_neighbour(Parent& parent, std::vector<Splice>& above) {
  if (parent.path.empty()) return false;
  const PathStep step = parent.path.back();
  const NodeView grandparent = view(step.node);
  if (grandparent.children() < 2) return false;
  const bool with_right = step.index + 1 < grandparent.children();
  const std::uint32_t first = with_right ? step.index : step.index - 1;
  std::byte* other =
      map_->at(map_->table.get(grandparent.child(with_right ? step.index + 1 : first)).offset());
  std::byte* const pair[] = {with_right ? parent.node : other, with_right ? other : parent.node};
  std::vector<Child> children;
  if (!with_right) gather_children(view(other), children);
  children.insert(children.end(), parent.children.begin(), parent.children.end());
  if (with_right) gather_children(view(other), children);
  Splice splice{parent.path, first, 2, {}};
  splice.children = build_layer(view(parent.node).level(), children, view(pair[0]).low_fence(),
                                view(pair[1]).high_fence(), pair);
  for (std::byte* node : pair) dead_.push_back({node, view(node).lid()});
  above.push_back(std::move(splice));
  return true;
}

void Change::change_parent(Parent& parent, bool may_merge, std::vector<Splice>& above) {
  const NodeView node = view(parent.node);
  const Geometry& g = map_->geometry;
  const bool root = node.lid() == map_->root;
  const std::string_view low = node.low_fence();
  const std::string_view high = node.high_fence();
  if (root && parent.children.size() == 1) {
    collapse_root(parent.node, parent.children.front());
    return;
  }
  if (interior_fits(g, parent.children, low, high)) {
    const std::uint64_t used = interior_bytes(g, parent.children) - g.groups_begin;
    const bool few = parent.children.size() < 2 || used < (g.node_bytes - g.groups_begin) / 4;
    if (root || !may_merge || !few || !merge_with_neighbour(parent, above)) {
      rebuild(parent.node, parent.children);
    }
    return;
  }
  if (root) {
    grow_root(parent.node, parent.children);
    return;
  }
  Splice splice{parent.path, parent.path.back().index, 1, {}};
  splice.children = build_layer(node.level(), parent.children, low, high, {&parent.node, 1});
  dead_.push_back({parent.node, node.lid()});
  above.push_back(std::move(splice));
}

void Change::splice(std::vector<Splice> splices) {
  if (splices.size() == 1 && splices.front().path.empty()) {  // the root was a leaf
    grow_root(map_->at(map_->table.get(map_->root).offset()), splices.front().children);
    return;
  }
  while (!splices.empty()) {
    // Splices of one parent are adjacent, since they ascend by key. They are applied from last to
    // first, so that the indices of each stay valid.
    std::vector<Parent> parents;
    for (std::size_t i = splices.size(); i-- > 0;) {
      Splice& one = splices[i];
      std::byte* const node = one.path.back().node;
      if (parents.empty() || parents.back().node != node) {
        Parent parent{node, one.path, {}};
        parent.path.pop_back();
        gather_children(view(node), parent.children);
        parents.push_back(std::move(parent));
      }
      std::vector<Child>& children = parents.back().children;
      const auto at = children.begin() + one.first;
      // The first child begins where the replaced one began.
      one.children.front().separator = at->separator;
      const auto behind = children.erase(at, at + one.count);
      children.insert(behind, one.children.begin(), one.children.end());
    }
    std::vector<Splice> above;
    for (std::size_t i = parents.size(); i-- > 0;) {
      change_parent(parents[i], parents.size() == 1, above);
    }
    splices = std::move(above);
  }
}

wire::Ref Change::successor_of(const DeadNode& dead) const {
  const NodeView old = view(dead.node);
  for (const NewNode& node : built_) {
    const NodeView candidate = view(node.node);
    if (node.level != old.level()) continue;
    if (compare_keys(candidate.low_fence(), old.low_fence()) <= 0 &&
        (!candidate.has_high_fence() ||
         compare_keys(old.low_fence(), candidate.high_fence()) < 0)) {
      return map_->ref_of(node.node);
    }
  }
  return {};  // the walker goes back to the root
}

void Change::prepare_commit(std::size_t values) {
  retired_.reserve(dead_.size());
  const std::size_t wanted = dead_.size() + values;
  if (!context_->retired.reserve(context_->retired_taken + wanted)) throw std::bad_alloc();
  ESPALIER_ASSERT(retired_taken_ == 0);
  retired_taken_ = wanted;
  context_->retired_taken += wanted;
}

void Change::commit(std::uint64_t version) noexcept {
  for (const NewNode& node : built_) go_live(node.node, version);
  // First the nodes that no reader can reach yet; then the kept LIDs, each of which swaps a subtree
  // in.
  for (const bool fresh : {true, false}) {
    for (const NewNode& node : built_) {
      if (node.fresh_lid == fresh) map_->table.set(node.lid, map_->ref_of(node.node), version);
    }
  }
  for (const NewNode& node : built_) {
    if (node.lid == map_->root) map_->height.store(node.level + 1, std::memory_order_relaxed);
  }
  for (const DeadNode& dead : dead_) {
    supersede(dead.node, version, successor_of(dead));
    if (view(dead.node).leaf()) unlock(dead.node);
  }
  committed_ = true;
}

void Change::retire(std::uint64_t version) noexcept {
  std::int64_t leaves = 0;
  std::int64_t interior = 0;
  for (const DeadNode& dead : dead_) {
    retired_.push_back(
        {static_cast<std::uint64_t>(dead.node - map_->base), version, map_->node_class, dead.lid});
    (view(dead.node).leaf() ? leaves : interior) -= 1;
  }
  for (const NewNode& node : built_) (node.level == 0 ? leaves : interior) += 1;
  map_->leaves.fetch_add(static_cast<std::uint64_t>(leaves), std::memory_order_relaxed);
  map_->interior_nodes.fetch_add(static_cast<std::uint64_t>(interior), std::memory_order_relaxed);
  map_->store.reclaimer.retire(*map_, context_->retired, retired_);
}

std::vector<std::size_t> cut_evenly(std::span<const Record> records, const Geometry& g,
                                    std::size_t parts) {
  std::vector<std::size_t> cuts{0};
  const std::uint64_t total = placed_bytes(records, g);
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < records.size() && cuts.size() < parts; ++i) {
    // Cut where the middle of this record passes the share of the parts so far.
    const std::uint64_t middle = before + placed_bytes(records[i], g) / 2;
    if (i > cuts.back() && middle * parts >= total * cuts.size()) cuts.push_back(i);
    before += placed_bytes(records[i], g);
  }
  return cuts;
}

bool cuts_fit(std::span<const Record> records, const Geometry& g, std::span<const std::size_t> cuts,
              std::string_view low, std::string_view high) {
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const bool last = i + 1 == cuts.size();
    const std::size_t end = last ? records.size() : cuts[i + 1];
    const std::string_view part_low = i == 0 ? low : separator_before(records, cuts[i]);
    const std::string_view part_high = last ? high : separator_before(records, end);
    if (placed_bytes(records.subspan(cuts[i], end - cuts[i]), g) >
        leaf_room(g, part_low, part_high)) {
      return false;
    }
  }
  return true;
}

std::vector<std::size_t> cut_to_fit(std::span<const Record> records, const Geometry& g,
                                    std::size_t parts_min, std::string_view low,
                                    std::string_view high) {
  for (std::size_t parts = parts_min;; ++parts) {
    std::vector<std::size_t> cuts = cut_evenly(records, g, parts);
    if (cuts_fit(records, g, cuts, low, high)) return cuts;
    ESPALIER_ASSERT(parts <= records.size());
  }
}

std::vector<std::size_t> cut_full(std::span<const Record> records, const Geometry& g,
                                  std::string_view low, std::string_view high) {
  std::vector<std::size_t> cuts{0};
  std::string_view part_low = low;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const bool last = i + 1 == records.size();
    const std::string_view part_high = last ? high : separator_before(records, i + 1);
    bytes += placed_bytes(records[i], g);
    if (bytes <= leaf_room(g, part_low, part_high)) continue;
    ESPALIER_ASSERT(i > cuts.back());  // a single record always fits
    cuts.push_back(i);
    part_low = separator_before(records, i);
    bytes = placed_bytes(records[i], g);
  }
  return cuts;
}

}  // namespace espalier::tree
