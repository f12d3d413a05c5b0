// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/structure.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "base/try_reserve.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"
#include "kinds/map/write/batch_writer.hpp"
#include "kinds/map/write/change.hpp"
#include "kinds/map/write/structure_parts.hpp"
#include "kinds/map/write/write_redo.hpp"
#include "store/store_core.hpp"

namespace espalier::tree {
namespace {

// Two leaves that share their items should not be fuller than this share of the limit: then the
// next items find room in both.
constexpr std::uint64_t kGivePercent = 95;
// A merged leaf should have room for some more items, or it would be split again at once.
constexpr std::uint64_t kMergePercent = 80;

// Ends a change of one leaf and its neighbours: readers of the version that it returns see it.
// Requires: the structure lock, which is given back.
std::uint64_t publish(MapCore& map, Change& change, WriteRedo& redo,
                      std::unique_lock<std::mutex>& structure) noexcept {
  change.give_back();
  ESPALIER_ASSERT(structure.owns_lock());
  const std::uint64_t version = map.clock.take();
  redo.hand_over(version, RedoMoment::locked);
  change.commit(version);
  structure.unlock();
  redo.hand_over(version, RedoMoment::unlocked);
  map.clock.done(version, redo.sequence());
  redo.hand_over(version, RedoMoment::released);
  change.retire(version);
  return version;
}

// A leaf that cannot take a write as it is, its records with the write, and what to do about it.
// Unlocks the leaves, unless they were replaced.
struct Rearrangement {
  Rearrangement() { olds.reserve(3); }  // so that a leaf that was locked is surely kept here
  ~Rearrangement() {
    for (std::byte* old : olds) unlock(old);
  }
  Rearrangement(const Rearrangement&) = delete;
  Rearrangement& operator=(const Rearrangement&) = delete;

  std::vector<std::byte*> olds;  // locked, ascending
  std::vector<Record> records;
  std::vector<std::size_t> cuts;
  std::uint32_t first_child = 0;  // of olds.front() in the parent
};

// Items only ever arrive at one end: leave the full leaf behind, full.
std::vector<std::size_t> cut_at_end(const NodeView& leaf, const Geometry& g,
                                    const Rearrangement& plan, std::string_view key) {
  const std::uint32_t entries = leaf.log_entries(leaf.lock_word());
  bool ascending = plan.records.back().key_view() == key;
  bool descending = plan.records.front().key_view() == key;
  for (std::uint32_t i = 0; i < entries; ++i) {
    ascending = ascending && leaf.log_place(i) == leaf.sorted_end();
    descending = descending && leaf.log_place(i) == g.sorted_begin;
  }
  if (ascending == descending) return {};
  std::vector<std::size_t> cuts{0, ascending ? plan.records.size() - 1 : 1};
  if (cuts_fit(plan.records, g, cuts, leaf.low_fence(), leaf.high_fence())) return cuts;
  return {};
}

enum class Side : std::uint8_t { left, right };

// Locks the neighbour on that side, if it has the same parent, and adds its records.
bool take_neighbour(MapCore& map, const Path& path, Side side, Rearrangement& plan) {
  if (path.empty()) return false;
  const PathStep step = path.back();
  const NodeView parent(step.node, map.geometry);
  const bool right = side == Side::right;
  if (right ? step.index + 1 >= parent.children() : step.index == 0) return false;
  std::byte* other = lock_current(map, parent.child(right ? step.index + 1 : step.index - 1));
  plan.olds.insert(right ? plan.olds.end() : plan.olds.begin(), other);
  std::vector<Record> records;
  gather_newest({other, map.geometry}, records);
  if (right) {
    plan.records.insert(plan.records.end(), records.begin(), records.end());
  } else {
    plan.records.insert(plan.records.begin(), records.begin(), records.end());
    plan.first_child = step.index - 1;
  }
  return true;
}

bool take_neighbour(MapCore& map, const Path& path, Rearrangement& plan) {
  return take_neighbour(map, path, Side::right, plan) ||
         take_neighbour(map, path, Side::left, plan);
}

void drop_neighbour(std::byte* leaf, Rearrangement& plan) {
  std::erase_if(plan.olds, [leaf](std::byte* old) {
    if (old != leaf) unlock(old);
    return old != leaf;
  });
}

// Whether the leaves' items may lie evenly in as many leaves; then `plan.cuts` say how.
bool share_evenly(const Geometry& g, Rearrangement& plan) {
  const std::string_view low = NodeView(plan.olds.front(), g).low_fence();
  const std::string_view high = NodeView(plan.olds.back(), g).high_fence();
  const std::uint64_t room = plan.olds.size() * merge_limit(g, low, high);
  if (placed_bytes(plan.records, g) * 100 > room * kGivePercent) return false;
  plan.cuts = cut_evenly(plan.records, g, plan.olds.size());
  return cuts_fit(plan.records, g, plan.cuts, low, high) &&
         Change::two_predecessors_at_most(plan.olds, plan.records, plan.cuts, g);
}

// Makes one leaf more of the leaves (or more than one if items are long).
bool add_leaf(const Geometry& g, Rearrangement& plan) {
  plan.cuts =
      cut_to_fit(plan.records, g, plan.olds.size() + 1, NodeView(plan.olds.front(), g).low_fence(),
                 NodeView(plan.olds.back(), g).high_fence());
  return Change::two_predecessors_at_most(plan.olds, plan.records, plan.cuts, g);
}

// Unlocks the first leaf, which `take_neighbour` added, and forgets its records, the first ones.
void drop_left(std::size_t records_without, Rearrangement& plan) {
  unlock(plan.olds.front());
  plan.olds.erase(plan.olds.begin());
  plan.records.erase(plan.records.begin(),
                     plan.records.end() - static_cast<std::ptrdiff_t>(records_without));
  ++plan.first_child;
}

// Too full: share with one neighbour or with both, else make four leaves of the three, three of
// two, or two of one. The more leaves take part, the fuller leaves are on the average.
// Returns whether there are more leaves now than before.
bool plan_growth(MapCore& map, const Path& path, std::byte* leaf, const WriteIntent& intent,
                 Rearrangement& plan) {
  const Geometry& g = map.geometry;
  plan.cuts = cut_at_end({leaf, g}, g, plan, intent.key->view());
  if (!plan.cuts.empty()) return true;
  if (take_neighbour(map, path, Side::right, plan) && share_evenly(g, plan)) return false;
  const std::size_t records_without_left = plan.records.size();
  if (take_neighbour(map, path, Side::left, plan)) {
    if (share_evenly(g, plan)) return false;
    if (add_leaf(g, plan)) return true;
    drop_left(records_without_left, plan);  // keys so uneven that a leaf would follow three
  }
  const bool possible = add_leaf(g, plan);
  ESPALIER_ASSERT(possible);
  return true;
}

// Too empty: merge with a neighbour if both fit one leaf, else only merge the log. Returns whether
// leaves are merged.
bool plan_shrinking(MapCore& map, const Path& path, std::byte* leaf, Rearrangement& plan) {
  const Geometry& g = map.geometry;
  const std::vector<Record> alone = plan.records;
  const std::uint32_t index = plan.first_child;
  plan.cuts = {0};
  if (!take_neighbour(map, path, plan)) return false;
  const std::uint64_t limit = merge_limit(g, NodeView(plan.olds.front(), g).low_fence(),
                                          NodeView(plan.olds.back(), g).high_fence());
  const std::uint64_t bytes = placed_bytes(plan.records, g);
  const bool nearly_empty = placed_bytes(alone, g) * 10 <= limit;
  if (bytes * 100 <= limit * kMergePercent || (nearly_empty && bytes <= limit) ||
      (alone.empty() &&
       cuts_fit(plan.records, g, plan.cuts, NodeView(plan.olds.front(), g).low_fence(),
                NodeView(plan.olds.back(), g).high_fence()))) {
    return true;
  }
  drop_neighbour(leaf, plan);
  plan.records = alone;
  plan.first_child = index;
  return false;
}

void rearrange(Change& change, const Path& path, const Rearrangement& plan) {
  std::vector<Child> children = change.replace_leaves(plan.olds, plan.records, plan.cuts);
  if (children.empty()) return;
  std::vector<Splice> splices;
  splices.push_back(
      {path, plan.first_child, static_cast<std::uint32_t>(plan.olds.size()), std::move(children)});
  change.splice(std::move(splices));
}

// Throws std::bad_alloc with nothing changed and nothing locked, as all that prepares changes.
WriteOutcome restructure_and_write(ThreadContext& context, MapCore& map,
                                   const WriteIntent& intent) {
  WriteOutcome outcome;
  auto redo = WriteRedo::of_writes(map, {&intent, 1});
  if (!redo) {
    outcome.status = WriteStatus::refused;
    outcome.refusal = redo.error().code;
    return outcome;
  }
  map.clock.admit();
  std::unique_lock structure(map.structure);
  Change change(context, map);
  const std::uint32_t nodes = 8 + 3 * tree_height(map);
  if (!reserve_change(change, context, map, nodes, nodes, intent.may_take_spares())) {
    outcome.status = WriteStatus::out_of_memory;
    return outcome;
  }
  Path path;
  Rearrangement plan;
  std::byte* leaf =
      lock_current(map, NodeView(find_leaf(map, *intent.key, path), map.geometry).lid());
  plan.olds.push_back(leaf);
  const NodeView node(leaf, map.geometry);
  const NewestState state = newest_state(map, node, *intent.key);
  if (!decide(map, state, intent).applied ||
      (log_has_room(node, 1, log_bytes(intent)) && !empties_leaf(map, node, intent))) {
    return outcome;  // something changed since the caller looked: let it look again
  }
  plan.first_child = path.empty() ? 0 : path.back().index;
  gather_newest(node, plan.records);
  apply_to_records(plan.records, intent);
  const std::uint64_t bytes = placed_bytes(plan.records, map.geometry);
  std::atomic<std::uint64_t>* counter = nullptr;
  if (bytes > rebuild_limit(map.geometry, node.low_fence(), node.high_fence(), intent)) {
    const bool split = plan_growth(map, path, leaf, intent, plan);
    counter = split ? &map.splits : &map.redistributions;
  } else if (plan_shrinking(map, path, leaf, plan)) {
    counter = &map.merges;
  }
  rearrange(change, path, plan);
  change.prepare_commit(1);
  const std::uint64_t version = publish(map, change, *redo, structure);
  plan.olds.clear();
  if (counter != nullptr) counter->fetch_add(1, std::memory_order_relaxed);
  retire_value(context, map, state, version);
  if (state.existed != (intent.op != Op::erase)) {
    map.items.add(context.index, state.existed ? -1 : 1);
  }
  outcome = {.status = WriteStatus::done,
             .applied = true,
             .existed = state.existed,
             .version = version,
             .wait_for = version};
  return outcome;
}

}  // namespace

WriteOutcome write_with_restructure(ThreadContext& context, MapCore& map,
                                    const WriteIntent& intent) noexcept {
  try {
    return restructure_and_write(context, map, intent);
  } catch (const std::bad_alloc&) {
    return {.status = WriteStatus::out_of_memory};
  }
}

BatchOutcome write_batch(ThreadContext& context, MapCore& map, std::span<const WriteIntent> writes,
                         std::span<const KeyCondition> conditions) noexcept {
  try {
    return BatchWriter(context, map, writes, conditions).run();
  } catch (const std::bad_alloc&) {
    BatchOutcome outcome;
    outcome.status = WriteStatus::out_of_memory;
    return outcome;
  }
}

namespace {

bool merge_leaf(ThreadContext& context, MapCore& map, const SearchKey& key) {
  auto redo = WriteRedo::of_structure(map);
  if (!redo) return false;
  map.clock.admit();
  std::unique_lock structure(map.structure);
  Change change(context, map);
  const std::uint32_t nodes = 8 + 3 * tree_height(map);
  // Not of what is put by for erases: this can wait.
  if (!reserve_change(change, context, map, nodes, nodes, false)) return false;
  Path path;
  Rearrangement plan;
  std::byte* leaf = lock_current(map, NodeView(find_leaf(map, key, path), map.geometry).lid());
  plan.olds.push_back(leaf);
  plan.first_child = path.empty() ? 0 : path.back().index;
  gather_newest({leaf, map.geometry}, plan.records);
  if (placed_bytes(plan.records, map.geometry) >= merge_threshold(map.geometry) ||
      !plan_shrinking(map, path, leaf, plan)) {
    return false;
  }
  rearrange(change, path, plan);
  change.prepare_commit(0);
  publish(map, change, *redo, structure);
  plan.olds.clear();
  map.merges.fetch_add(1, std::memory_order_relaxed);
  return true;
}

}  // namespace

bool merge_thin_leaf(ThreadContext& context, MapCore& map, const SearchKey& key) noexcept {
  try {
    return merge_leaf(context, map, key);
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace espalier::tree
