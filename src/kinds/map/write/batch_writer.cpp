// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/batch_writer.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"
#include "kinds/map/write/structure_parts.hpp"

namespace espalier::tree {

BatchWriter::BatchWriter(ThreadContext& context, MapCore& map, std::span<const WriteIntent> writes,
                         std::span<const KeyCondition> conditions)
    : context_(context),
      map_(map),
      writes_(writes),
      conditions_(conditions),
      change_(context, map),
      erases_(std::all_of(writes.begin(), writes.end(),
                          [](const WriteIntent& one) { return one.op == Op::erase; })) {}

BatchOutcome BatchWriter::run() {
  BatchOutcome outcome;
  auto redo = WriteRedo::of_writes(map_, writes_);
  if (!redo) {
    outcome.status = WriteStatus::refused;
    outcome.refusal = redo.error().code;
    return outcome;
  }
  redo_ = std::move(*redo);
  map_.clock.admit();
  if (!enter()) {
    outcome.status = WriteStatus::out_of_memory;
    return outcome;
  }
  if (planted(Bug::conditions_before_lock) && !check(outcome)) return outcome;
  reached(Moment::before_lock);
  lock();
  for (const std::byte* leaf : locked_) {
    outcome.wait_for = std::max(outcome.wait_for, newest_version({leaf, map_.geometry}));
  }
  if (!planted(Bug::conditions_before_lock) && !check(outcome)) return outcome;
  prepare();
  fill();
  const std::uint64_t version = publish_recorded();
  redo_.hand_over(version, RedoMoment::unlocked);
  map_.clock.done(version, redo_.sequence());
  redo_.hand_over(version, RedoMoment::released);
  return finish(version);
}

Result<void> BatchWriter::enter() {
  structure_ = std::unique_lock(map_.structure);
  find_shares();
  const std::uint32_t nodes = nodes_needed();
  auto reserved = reserve_change(change_, context_, map_, nodes, erases_ ? 0 : nodes, erases_);
  if (!reserved) change_.give_back();
  return reserved;
}

void BatchWriter::find_shares() {
  for (std::size_t i = 0; i < writes_.size(); ++i) {
    const std::uint32_t bytes = log_bytes(writes_[i]);
    if (!shares_.empty() && NodeView(shares_.back().leaf, map_.geometry).covers(*writes_[i].key)) {
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

// In a batch of erases each leaf is rebuilt as at most one: the content of a leaf's sorted block
// and log fits one sorted block, since an item takes less there than in a log.
std::uint32_t BatchWriter::nodes_needed() const {
  if (erases_) return static_cast<std::uint32_t>(shares_.size());
  std::uint64_t leaves = 0;
  for (const LeafShare& share : shares_) {
    leaves += 3 + share.bytes / (map_.geometry.node_bytes / 4);
  }
  return static_cast<std::uint32_t>(2 * leaves + 4 * (tree_height(map_) + 2));
}

// In ascending order; every thread that locks several leaves holds the structure lock.
void BatchWriter::lock() {
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

void BatchWriter::unlock_all() noexcept {
  for (std::byte* leaf : locked_) unlock(leaf);
  locked_.clear();
}

bool BatchWriter::check(BatchOutcome& outcome) const {
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

// All that may fail. Leaves the logs alone: unpublished log bytes must be blank.
void BatchWriter::prepare() {
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

NewestState BatchWriter::newest(const SearchKey& key) const {
  Path path;
  const NodeView leaf(find_leaf(map_, key, path), map_.geometry);
  return newest_state(map_, leaf, key);
}

// Looks up the state that each write replaces.
void BatchWriter::look() {
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

void BatchWriter::append(const LeafShare& share) noexcept {
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
  // As in empties_leaf(): no later write may merge the leaf.
  if (erased && node.lid() != map_.root && node.items() <= appended.entries) {
    thin_.push_back(writes_[share.first].key);
  }
}

void BatchWriter::rebuild(const LeafShare& share, std::vector<Splice>& splices) {
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

void BatchWriter::fill() noexcept {
  for (const LeafShare& share : shares_) {
    if (share.fits_log) append(share);
  }
  change_.give_back();
}

std::uint64_t BatchWriter::publish_recorded() noexcept {
  const std::uint64_t version = map_.clock.take();
  redo_.hand_over(version, RedoMoment::locked);
  if (planted(Bug::batch_in_two_versions) && entries_.size() > 1) {
    publish_entry(entries_.front(), version);
    entries_.erase(entries_.begin());
    map_.clock.done(version, redo_.sequence());
    reached(Moment::half_published);
    return publish_recorded();
  }
  publish(version);
  return version;
}

void BatchWriter::publish(std::uint64_t version) noexcept {
  for (std::byte* entry : entries_) {
    publish_entry(entry, version);
    reached(Moment::half_published);
  }
  change_.commit(version);  // unlocks the replaced leaves
  unlock_written();
}

void BatchWriter::unlock_written() noexcept {
  for (const Appended& one : appended_) unlock(one.leaf, one.entries, one.units);
  for (std::byte* leaf : locked_) {
    const bool written = std::find(rebuilt_.begin(), rebuilt_.end(), leaf) != rebuilt_.end() ||
                         std::any_of(appended_.begin(), appended_.end(),
                                     [&](const Appended& one) { return one.leaf == leaf; });
    if (!written) unlock(leaf);
  }
  locked_.clear();
}

BatchOutcome BatchWriter::finish(std::uint64_t version) noexcept {
  BatchOutcome outcome;
  change_.retire(version);
  for (const NewestState& state : replaced_) retire_value(context_, map_, state, version);
  map_.items.add(context_.index, items_);
  outcome.status = WriteStatus::done;
  outcome.version = outcome.wait_for = version;
  outcome.existed = existed_;
  outcome.thin = std::move(thin_);
  return outcome;
}

}  // namespace espalier::tree
