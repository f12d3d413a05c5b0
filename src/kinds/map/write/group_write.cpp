// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/group_write.hpp"

#include "base/assert.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"
#include "store/store_core.hpp"

namespace espalier::tree {

GroupWriter::GroupWriter(ThreadContext& context, MapCore& map) noexcept
    : context_(context), map_(map) {
  ESPALIER_ASSERT(map.redo() == nullptr);
  map.clock.admit();
  ready_ = context.retired.reserve(kWritesMax);  // for values
  early_ = planted(Bug::version_before_lock) ? map.clock.take() : 0;
  reached(Moment::before_lock);
}

// The leaf, locked and as it is now; null: another writer has it, or it was replaced.
GroupWriter::GroupLeaf* GroupWriter::lock(std::byte* at) noexcept {
  for (std::size_t i = leaf_count_; i-- > 0;) {
    if (at_[i] == at) return leaves_[i].open ? &leaves_[i] : nullptr;
  }
  ESPALIER_ASSERT(leaf_count_ < kWritesMax);
  at_[leaf_count_] = at;
  GroupLeaf& leaf = leaves_[leaf_count_++];
  leaf = {try_lock(at), false, 0, 0};
  if (!leaf.locked) return nullptr;
  const NodeView node(at, map_.geometry);
  const wire::LockWord word = node.lock_word();
  leaf.open = node.superseded() == wire::kLive;
  leaf.entries = word.entries();
  leaf.units = word.units();
  return leaf.open ? &leaf : nullptr;
}

bool GroupWriter::has_key(const std::byte* leaf, std::string_view key) const {
  for (std::size_t i = 0; i < count_; ++i) {
    if (entries_[i].leaf == leaf && entries_[i].key == key) {
      return !planted(Bug::one_version_for_two_puts);
    }
  }
  return false;
}

WriteOutcome GroupWriter::add(const WriteIntent& intent, std::byte* at,
                              const LeafProbe* known) noexcept {
  WriteOutcome outcome;
  if (!ready_) return outcome;
  GroupLeaf* const leaf = lock(at);
  if (leaf == nullptr) return outcome;
  const NodeView node(at, map_.geometry);
  const bool erases = intent.op == Op::erase;
  const wire::LockWord fill = wire::LockWord{}.next(leaf->entries, leaf->units);
  // As empties_leaf() has it.
  const bool may_empty = erases && node.lid() != map_.root && node.items() <= leaf->entries + 1;
  if (may_empty || !log_has_room(node, fill, 1, log_bytes(intent))) {
    leaf->open = false;
    return outcome;
  }
  if (!node.covers(*intent.key) || has_key(at, intent.key->view())) return outcome;
  const NewestState state = newest_state(map_, node, *intent.key, known);
  outcome.status = WriteStatus::done;
  outcome.existed = state.existed;
  outcome.applied = takes_effect(intent.op, state.existed);
  if (!outcome.applied) {
    outcome.wait_for = newest_version(node);
    return outcome;
  }
  Entry& entry = entries_[count_++];
  entry = {append_entry(at, map_.geometry, intent, state, leaf->entries, leaf->units),
           at,
           intent.key->view(),
           state.existed && state.out_of_line ? state.value.data() : nullptr,
           state.existed,
           erases};
  ++leaf->entries;
  leaf->units += log_bytes(intent) / wire::kLogUnitBytes;
  return outcome;
}

std::uint64_t GroupWriter::publish() noexcept {
  std::uint64_t version = early_;
  if (count_ != 0 && version == 0) {
    reached(Moment::before_version);
    version = map_.clock.take();
  }
  for (std::size_t i = 0; i < count_; ++i) publish_entry(entries_[i].at, version);
  for (std::size_t i = 0; i < leaf_count_; ++i) {
    if (leaves_[i].locked) unlock(at_[i], leaves_[i].entries, leaves_[i].units);
  }
  if (count_ == 0 && early_ == 0) return 0;
  map_.clock.done(version);
  std::int64_t items = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    const Entry& entry = entries_[i];
    if (entry.replaced_value != nullptr) retire_replaced(entry, version);
    if (entry.existed == entry.erases) items += entry.erases ? -1 : 1;
  }
  if (items != 0) map_.items.add(context_.index, items);
  return version;
}

void GroupWriter::retire_replaced(const Entry& entry, std::uint64_t version) noexcept {
  NewestState replaced;
  replaced.existed = true;
  replaced.out_of_line = true;
  replaced.value = {entry.replaced_value, sizeof(wire::ValueRef)};
  retire_value(context_, map_, replaced, version);
}

}  // namespace espalier::tree
