// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/structure.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "base/try_reserve.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"
#include "kinds/map/write/change.hpp"
#include "kinds/map/write/write_redo.hpp"
#include "store/store_core.hpp"

namespace espalier::tree {
namespace {

// Two leaves that share their items should not be fuller than this share of the limit: then the
// next items find room in both.
constexpr std::uint64_t kGivePercent = 95;
// A merged leaf should have room for some more items, or it would be split again at once.
constexpr std::uint64_t kMergePercent = 80;

// Locks the leaf that a LID names now. Requires: the structure lock.
std::byte* lock_current(MapCore& map, wire::Lid lid) {
  for (;;) {
    std::byte* leaf = map.at(map.table.get(lid).offset());
    lock_leaf(leaf);
    const NodeView node(leaf, map.geometry);
    ESPALIER_ASSERT(node.map_id() == map.id && node.lid() == lid && node.leaf());
    if (node.superseded() == wire::kLive) return leaf;
    unlock(leaf);  // its log was merged meanwhile
  }
}

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

std::uint32_t height(const MapCore& map) { return map.node(map.root).level() + 1; }

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

// `lids`: of the new nodes, how many may not take the place of old ones.
Result<void> reserve(Change& change, ThreadContext& context, MapCore& map, std::uint32_t nodes,
                     std::uint32_t lids, bool erase) {
  if (change.reserve(nodes, lids, false)) return {};
  map.store.reclaimer.collect(context.cache);
  return change.reserve(nodes, lids, erase);
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
  const std::uint32_t nodes = 8 + 3 * height(map);
  if (!reserve(change, context, map, nodes, nodes, intent.op == Op::erase)) {
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
  const bool condition = holds(map, state, intent.condition);
  if (!condition || !takes_effect(intent.op, state.existed) ||
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
  outcome = {WriteStatus::done, true, state.existed, {}, version, version};
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

namespace {

// The writes of a batch that fall into one leaf.
struct LeafShare {
  std::byte* leaf = nullptr;
  Path path;
  std::size_t first = 0;  // of the batch's writes
  std::size_t count = 0;
  std::uint32_t bytes = 0;  // of log, or of sorted block: an upper bound for both
  bool fits_log = false;
};

// A batch on its way through the tree. Holds the structure lock and its leaves' locks, and lets go
// of them whatever happens.
class BatchWriter {
 public:
  BatchWriter(ThreadContext& context, MapCore& map, std::span<const WriteIntent> writes,
              std::span<const KeyCondition> conditions)
      : context_(context),
        map_(map),
        writes_(writes),
        conditions_(conditions),
        change_(context, map),
        erases_(std::all_of(writes.begin(), writes.end(),
                            [](const WriteIntent& one) { return one.op == Op::erase; })) {}
  ~BatchWriter() { unlock_all(); }
  BatchWriter(const BatchWriter&) = delete;
  BatchWriter& operator=(const BatchWriter&) = delete;

  BatchOutcome run() {
    BatchOutcome outcome;
    auto redo = WriteRedo::of_writes(map_, writes_);
    if (!redo) {
      outcome.status = WriteStatus::refused;
      outcome.refusal = redo.error().code;
      return outcome;
    }
    redo_ = std::move(*redo);
    map_.clock.admit();
    structure_ = std::unique_lock(map_.structure);
    find_shares();
    const std::uint32_t nodes = nodes_needed();
    if (!reserve(change_, context_, map_, nodes, erases_ ? 0 : nodes, erases_)) {
      change_.give_back();
      outcome.status = WriteStatus::out_of_memory;
      return outcome;
    }
    if (planted(Bug::conditions_before_lock) && !check(outcome)) return outcome;
    reached(Moment::before_lock);
    lock_all();
    for (const std::byte* leaf : locked_) {
      outcome.wait_for = std::max(outcome.wait_for, newest_version({leaf, map_.geometry}));
    }
    if (!planted(Bug::conditions_before_lock) && !check(outcome)) return outcome;
    prepare();
    publish(outcome);
    return outcome;
  }

 private:
  void find_shares() {
    for (std::size_t i = 0; i < writes_.size(); ++i) {
      const std::uint32_t bytes = log_bytes(writes_[i]);
      if (!shares_.empty() &&
          NodeView(shares_.back().leaf, map_.geometry).covers(*writes_[i].key)) {
        ++shares_.back().count;
        shares_.back().bytes += bytes;
        continue;
      }
      LeafShare share;
      share.leaf = find_leaf(map_, *writes_[i].key, share.path);
      share.first = i;
      share.count = 1;
      share.bytes = bytes;
      shares_.push_back(std::move(share));
    }
  }

  // Of erases alone each leaf is rebuilt as one, if at all: what a leaf's sorted block and log hold
  // fits a sorted block, where an item takes less than in a log.
  [[nodiscard]] std::uint32_t nodes_needed() const {
    if (erases_) return static_cast<std::uint32_t>(shares_.size());
    std::uint64_t leaves = 0;
    for (const LeafShare& share : shares_) {
      leaves += 3 + share.bytes / (map_.geometry.node_bytes / 4);
    }
    return static_cast<std::uint32_t>(2 * leaves + 4 * (height(map_) + 2));
  }

  // In ascending order; whoever locks several leaves holds the structure lock.
  void lock_all() {
    locked_.reserve(shares_.size() + conditions_.size());
    for (LeafShare& share : shares_) {
      share.leaf = lock_current(map_, NodeView(share.leaf, map_.geometry).lid());
      locked_.push_back(share.leaf);
    }
    Path path;
    for (const KeyCondition& condition : conditions_) {
      std::byte* leaf = find_leaf(map_, *condition.key, path);
      if (std::find(locked_.begin(), locked_.end(), leaf) != locked_.end()) continue;
      locked_.push_back(lock_current(map_, NodeView(leaf, map_.geometry).lid()));
    }
  }

  void unlock_all() noexcept {
    for (std::byte* leaf : locked_) unlock(leaf);
    locked_.clear();
  }

  bool check(BatchOutcome& outcome) const {
    Path path;
    for (std::size_t i = 0; i < conditions_.size(); ++i) {
      const KeyCondition& one = conditions_[i];
      const NodeView leaf(find_leaf(map_, *one.key, path), map_.geometry);
      if (holds(map_, newest_state(map_, leaf, *one.key), one.condition)) continue;
      outcome.status = WriteStatus::condition_failed;
      outcome.failed_condition = static_cast<std::uint32_t>(i);
      return false;
    }
    return true;
  }

  // All that may fail. The logs are not touched: what lies there unpublished must be blank.
  void prepare() {
    entries_.reserve(writes_.size());
    appended_.reserve(shares_.size());
    rebuilt_.reserve(shares_.size());
    thin_.reserve(shares_.size());
    look();
    std::vector<Splice> splices;
    for (LeafShare& share : shares_) {
      share.fits_log = log_has_room({share.leaf, map_.geometry},
                                    static_cast<std::uint32_t>(share.count), share.bytes);
      if (!share.fits_log) rebuild(share, splices);
    }
    change_.splice(std::move(splices));
    change_.prepare_commit(static_cast<std::size_t>(std::ranges::count_if(
        replaced_, [](const NewestState& state) { return state.existed && state.out_of_line; })));
  }

  // At what each write replaces.
  void look() {
    replaced_.reserve(writes_.size());
    for (const LeafShare& share : shares_) {
      for (const WriteIntent& intent : writes_.subspan(share.first, share.count)) {
        const NewestState state = newest_state(map_, {share.leaf, map_.geometry}, *intent.key);
        existed_ = existed_ || state.existed;
        if (state.existed != (intent.op != Op::erase)) items_ += state.existed ? -1 : 1;
        replaced_.push_back(state);
      }
    }
  }

  void append(const LeafShare& share) noexcept {
    std::byte* const leaf = share.leaf;
    const NodeView node(leaf, map_.geometry);
    const wire::LockWord lock = node.lock_word();
    Appended appended{leaf, lock.entries(), lock.units()};
    bool erased = false;
    for (std::size_t i = share.first; i < share.first + share.count; ++i) {
      const WriteIntent& intent = writes_[i];
      const NewestState& state = replaced_[i];
      if (intent.op == Op::erase && !state.existed) continue;
      erased = erased || intent.op == Op::erase;
      entries_.push_back(
          append_entry(leaf, map_.geometry, intent, state, appended.entries, appended.units));
      ++appended.entries;
      appended.units += log_bytes(intent) / wire::kLogUnitBytes;
    }
    appended_.push_back(appended);
    // As empties_leaf() has it: for no further write may come.
    if (erased && node.lid() != map_.root && node.items() <= appended.entries) {
      thin_.push_back(writes_[share.first].key);
    }
  }

  void rebuild(const LeafShare& share, std::vector<Splice>& splices) {
    const NodeView node(share.leaf, map_.geometry);
    std::vector<Record> records;
    gather_newest(node, records);
    const auto writes = writes_.subspan(share.first, share.count);
    for (const WriteIntent& intent : writes) apply_to_records(records, intent);
    const std::uint64_t bytes = placed_bytes(records, map_.geometry);
    const std::string_view low = node.low_fence();
    const std::string_view high = node.high_fence();
    const std::uint64_t limit =
        erases_ ? leaf_room(map_.geometry, low, high) : merge_limit(map_.geometry, low, high);
    std::vector<std::size_t> cuts{0};
    if (bytes > limit) {
      ESPALIER_ASSERT(!erases_);
      cuts = cut_to_fit(records, map_.geometry, bytes * 10 / (limit * 7) + 1, low, high);
    }
    if (bytes < merge_threshold(map_.geometry) && node.lid() != map_.root) {
      thin_.push_back(writes.front().key);
    }
    rebuilt_.push_back(share.leaf);
    std::vector<Child> children = change_.replace_leaves({&share.leaf, 1}, records, cuts);
    if (children.empty()) return;
    const std::uint32_t first = share.path.empty() ? 0 : share.path.back().index;
    splices.push_back({share.path, first, 1, std::move(children)});
  }

  void publish(BatchOutcome& outcome) noexcept {
    for (const LeafShare& share : shares_) {
      if (share.fits_log) append(share);
    }
    change_.give_back();
    publish_entries(outcome);
  }

  void publish_entries(BatchOutcome& outcome) noexcept {
    const std::uint64_t version = map_.clock.take();
    redo_.hand_over(version, RedoMoment::locked);
    if (planted(Bug::batch_in_two_versions) && entries_.size() > 1) {
      publish_entry(entries_.front(), version);
      entries_.erase(entries_.begin());
      map_.clock.done(version, redo_.sequence());
      reached(Moment::half_published);
      return publish_entries(outcome);
    }
    for (std::byte* entry : entries_) {
      publish_entry(entry, version);
      reached(Moment::half_published);
    }
    change_.commit(version);  // unlocks the leaves that it replaced
    for (const Appended& one : appended_) unlock(one.leaf, one.entries, one.units);
    for (std::byte* leaf : locked_) {
      const bool written = std::find(rebuilt_.begin(), rebuilt_.end(), leaf) != rebuilt_.end() ||
                           std::any_of(appended_.begin(), appended_.end(),
                                       [&](const Appended& one) { return one.leaf == leaf; });
      if (!written) unlock(leaf);
    }
    locked_.clear();
    redo_.hand_over(version, RedoMoment::unlocked);
    map_.clock.done(version, redo_.sequence());
    redo_.hand_over(version, RedoMoment::released);
    change_.retire(version);
    for (const NewestState& state : replaced_) retire_value(context_, map_, state, version);
    map_.items.add(context_.index, items_);
    outcome.status = WriteStatus::done;
    outcome.version = outcome.wait_for = version;
    outcome.existed = existed_;
    outcome.thin = std::move(thin_);
  }

  struct Appended {
    std::byte* leaf;
    std::uint32_t entries;
    std::uint32_t units;
  };

  ThreadContext& context_;
  MapCore& map_;
  std::span<const WriteIntent> writes_;
  std::span<const KeyCondition> conditions_;
  WriteRedo redo_;
  std::unique_lock<std::mutex> structure_;  // goes last
  Change change_;
  const bool erases_;  // and nothing else: works in a full store
  std::vector<LeafShare> shares_;
  std::vector<std::byte*> locked_;
  std::vector<std::byte*> rebuilt_;
  std::vector<Appended> appended_;
  std::vector<std::byte*> entries_;  // written, not published
  std::vector<NewestState> replaced_;
  std::vector<const SearchKey*> thin_;
  std::int64_t items_ = 0;
  bool existed_ = false;
};

}  // namespace

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
  const std::uint32_t nodes = 8 + 3 * height(map);
  // Not of what is put by for erases: this can wait.
  if (!reserve(change, context, map, nodes, nodes, false)) return false;
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
