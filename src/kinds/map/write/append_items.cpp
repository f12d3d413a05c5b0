// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/append_items.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"
#include "kinds/map/write/structure_parts.hpp"
#include "store/thread_context.hpp"

namespace espalier::tree {
namespace {

/// A locked leaf, unlocked unless it is replaced.
class LockedLeaf {
 public:
  LockedLeaf(MapCore& map, wire::Lid lid) : leaf_(lock_current(map, lid)) {}
  LockedLeaf(const LockedLeaf&) = delete;
  LockedLeaf& operator=(const LockedLeaf&) = delete;
  ~LockedLeaf() {
    if (leaf_ != nullptr) unlock(leaf_);
  }
  [[nodiscard]] std::byte* get() const { return leaf_; }
  void replaced() { leaf_ = nullptr; }

 private:
  std::byte* leaf_;
};

class Appending {
 public:
  Appending(ThreadContext& context, MapCore& map)
      : context_(context), map_(map), change_(context, map) {}

  /// Throws std::bad_alloc with nothing written.
  Result<bool> append(std::span<const Record> items) {
    structure_ = std::unique_lock(map_.structure);
    SearchKey first;
    first.assign(items.front().key_view());
    Path path;
    const NodeView last(find_leaf(map_, first, path), map_.geometry);
    if (last.has_high_fence()) return false;
    const std::uint32_t nodes = nodes_for(items);
    if (auto taken = reserve_change(change_, context_, map_, nodes, nodes, false); !taken) {
      return std::unexpected(taken.error());
    }
    LockedLeaf leaf(map_, last.lid());
    std::vector<Record> records;
    gather_newest({leaf.get(), map_.geometry}, records);
    const int order =
        records.empty() ? -1 : compare_keys(records.back().key_view(), first.view());
    if (order > 0 || (order == 0 && !planted(Bug::appended_over_last_key))) return false;
    records.insert(records.end(), items.begin(), items.end());
    replace(leaf.get(), std::move(path), records);
    publish();
    leaf.replaced();
    map_.items.add(context_.index, static_cast<std::int64_t>(items.size()));
    return true;
  }

 private:
  /// Bound on the nodes needed: leaves a quarter full, and the nodes above them.
  [[nodiscard]] std::uint32_t nodes_for(std::span<const Record> items) const {
    const Geometry& g = map_.geometry;
    const std::uint64_t leaves = 3 + placed_bytes(items, g) / (g.node_bytes / 4);
    return static_cast<std::uint32_t>(2 * leaves + 4 * (tree_height(map_) + 2));
  }
  void replace(std::byte* leaf, Path path, const std::vector<Record>& records) {
    const NodeView node(leaf, map_.geometry);
    const auto cuts = cut_full(records, map_.geometry, node.low_fence(), node.high_fence());
    std::vector<Child> children = change_.replace_leaves({&leaf, 1}, records, cuts);
    std::vector<Splice> splices;
    if (!children.empty()) {
      const std::uint32_t at = path.empty() ? 0 : path.back().index;
      splices.push_back({std::move(path), at, 1, std::move(children)});
    }
    change_.splice(std::move(splices));
    change_.prepare_commit(0);
  }
  void publish() noexcept {
    change_.give_back();
    const std::uint64_t version = map_.clock.take();
    change_.commit(version);  // unlocks the leaf
    map_.clock.done(version);
    change_.retire(version);
  }

  ThreadContext& context_;
  MapCore& map_;
  std::unique_lock<std::mutex> structure_;  // destroyed last
  Change change_;
};

}  // namespace

Result<bool> append_items(ThreadContext& context, MapCore& map,
                          std::span<const Record> items) noexcept {
  ESPALIER_ASSERT(map.redo() == nullptr && !items.empty());
  map.clock.admit();
  context.slot.enter();
  Result<bool> appended = fail(Code::out_of_memory);
  try {
    appended = Appending(context, map).append(items);
  } catch (const std::bad_alloc&) {  // `appended` says so
  }
  context.slot.exit();
  if (map.store.reclaimer.due()) map.store.reclaimer.collect(context.cache);
  return appended;
}

}  // namespace espalier::tree
