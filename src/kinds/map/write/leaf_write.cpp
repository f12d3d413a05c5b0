// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/leaf_write.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/assert.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"
#include "kinds/map/write/log_merge.hpp"
#include "kinds/map/write/staged_value.hpp"
#include "kinds/map/write/write_redo.hpp"
#include "store/store_core.hpp"

namespace espalier::tree {
namespace {

std::atomic_ref<std::uint64_t> lock_of(std::byte* leaf) {
  return base::shared<std::uint64_t>(leaf + offsetof(wire::NodeHeader, lock));
}

// Where a new entry goes in the key order of the log: behind so many that are smaller; and whether
// the next one there has its key. Their places in the sorted block decide for all
// but those that have the same place, so few keys are compared.
struct LogOrder {
  std::uint32_t hint = 0;
  bool same_key_next = false;
};

LogOrder order_of(const NodeView& leaf, const SearchKey& key, std::uint32_t entries,
                  std::uint16_t place) {
  // All at once, in vectors: what is not written yet is above every place.
  const Geometry& g = leaf.geometry();
  std::uint16_t places[wire::kLogSlotsMax];
  std::memset(places, 0xFF, sizeof places);
  std::memcpy(places, leaf.bytes() + g.places_begin, std::size_t{2} * entries);
  std::uint16_t below = 0;
  std::uint16_t tied = 0;
  for (const std::uint16_t other : places) {
    below = static_cast<std::uint16_t>(below + (other < place ? 1 : 0));
    tied = static_cast<std::uint16_t>(tied + (other == place ? 1 : 0));
  }
  // Keys that ascend: the newest entry is the last one in order, and this one belongs behind it.
  if (tied > 1 && places[entries - 1] == place) {
    const LogItem last = leaf.log_item(entries - 1, wire::kLive);
    if (last.order_hint == entries - 1 && compare_keys(last.key, key.view()) < 0) {
      return {entries, false};
    }
  }
  LogOrder order{below, false};
  for (std::uint32_t i = 0; tied != 0; ++i) {
    if (places[i] != place) continue;
    --tied;
    // Entries of the same batch have no version yet.
    const int compared = compare_keys(leaf.log_item(i, wire::kLive).key, key.view());
    order.hint += compared < 0 ? 1 : 0;
    order.same_key_next = order.same_key_next || compared == 0;
  }
  return order;
}

// Makes an entry visible whose value is not there yet (Bug::version_before_payload).
void publish_too_early(std::byte* leaf, const Geometry& g, std::uint32_t index, std::uint16_t slot,
                       std::byte* at) {
  base::store_shared<std::uint16_t>(leaf + g.slots_begin + 2 * index, slot);
  publish_entry(at, 0);
  constexpr std::uint64_t kOneEntry = std::uint64_t{1} << 32;
  lock_of(leaf).store(lock_of(leaf).load() + kOneEntry);
}

// The record of a write to a map that has no sink. Writing is compiled for it, too, so that where
// there are no records nothing asks for them but the branch that chooses.
struct NoRedo {
  static constexpr void hand_over(std::uint64_t, RedoMoment) {}
  [[nodiscard]] static constexpr std::uint64_t sequence() { return 0; }
};

// Merges the log and the write into a new sorted block, in place of the locked leaf.
// Returns false (and leaves the leaf locked) if the structure must change.
template <class Redo>
bool merge_log(ThreadContext& context, MapCore& map, std::byte* leaf, const WriteIntent& intent,
               const NewestState& state, Redo& redo, WriteOutcome& outcome) {
  const NodeView old(leaf, map.geometry);
  const LogMerge merge(old, intent, state);
  const std::uint64_t bytes = merge.bytes();
  const std::string_view low = old.low_fence();
  const std::string_view high = old.high_fence();
  const bool alone = old.lid() == map.root;
  if (bytes > rebuild_limit(map.geometry, low, high, intent)) return false;
  // One that grows will not stay so empty: the leaf that ascending keys fill begins with one item.
  const bool grows = bytes > old.sorted_end() - map.geometry.sorted_begin;
  if (!alone && !grows && bytes < merge_threshold(map.geometry)) return false;

  const auto offset = context.cache.allocate(map.node_class);
  ESPALIER_ASSERT(offset.has_value());  // reserved before the lock was taken
  std::byte* buffer = map.at(*offset);
  NodeFrame frame{map.id, old.lid(),        old.left(), old.right(), low,
                  high,   map.ref_of(leaf), {},         0,           map.ref_of(buffer)};
  if (planted(Bug::no_predecessor) || !map.options.versions) frame.old_ref = {};
  merge.build(buffer, frame);

  const std::uint64_t version = map.clock.take();
  redo.hand_over(version, RedoMoment::locked);
  go_live(buffer, version);
  const wire::Ref ref = map.ref_of(buffer);
  map.table.set(old.lid(), ref, version);
  supersede(leaf, version, ref);
  unlock(leaf);
  outcome.version = outcome.wait_for = version;
  map.log_merges.add(context.index, 1);
  return true;
}

void retire_leaf(ThreadContext& context, MapCore& map, std::byte* leaf, std::uint64_t version) {
  const memory::Retired retired{static_cast<std::uint64_t>(leaf - map.base), version,
                                map.node_class, 0};
  map.store.reclaimer.retire(map, context.retired, {&retired, 1});
}

template <class Redo>
void append_and_unlock(MapCore& map, std::byte* leaf, const WriteIntent& intent,
                       const NewestState& state, Redo& redo, WriteOutcome& outcome,
                       std::uint64_t version_taken_early) {
  const NodeView node(leaf, map.geometry);
  const wire::LockWord lock = node.lock_word();
  ESPALIER_ASSERT(lock.locked());  // before a version is taken (rule 11)
  std::byte* at = append_entry(leaf, map.geometry, intent, state, lock.entries(), lock.units());
  reached(Moment::before_version);
  const std::uint64_t version =
      planted(Bug::version_before_lock) ? version_taken_early : map.clock.take();
  redo.hand_over(version, RedoMoment::locked);
  publish_entry(at, version);
  unlock(leaf, lock.entries() + 1, lock.units() + log_bytes(intent) / wire::kLogUnitBytes);
  outcome.version = outcome.wait_for = version;
}

// Before the leaf is locked. False: nothing can be handed to the reclaimer.
bool make_ready(ThreadContext& context, MapCore& map) {
  if (!context.retired.reserve(2)) return false;  // for a leaf, and for a value
  if (context.cache.reserved(map.node_class) == 0) {
    // Not yet a failure: the log may have room.
    if (!context.cache.reserve(map.node_class, 1)) map.store.reclaimer.collect(context.cache);
  }
  return true;
}

}  // namespace

bool try_lock(std::byte* leaf) {
  std::uint64_t word = lock_of(leaf).load(std::memory_order_relaxed);
  if ((word & 1) != 0) return false;
  return lock_of(leaf).compare_exchange_strong(word, word | 1, std::memory_order_acquire,
                                               std::memory_order_relaxed);
}

void lock_leaf(std::byte* leaf) {
  while (!try_lock(leaf)) std::this_thread::yield();
}

void unlock(std::byte* leaf, std::uint32_t entries, std::uint32_t units) {
  const wire::LockWord word{lock_of(leaf).load(std::memory_order_relaxed)};
  lock_of(leaf).store(word.next(entries, units).bits, std::memory_order_release);
}

void unlock(std::byte* leaf) {
  const wire::LockWord word{lock_of(leaf).load(std::memory_order_relaxed)};
  unlock(leaf, word.entries(), word.units());
}

std::uint64_t newest_version(const NodeView& leaf) {
  const std::uint32_t entries = leaf.log_entries(leaf.lock_word());
  return entries == 0 ? leaf.created() : leaf.log_item(entries - 1, kNewest).version;
}

NewestState newest_state(const MapCore& map, const NodeView& leaf, const SearchKey& key,
                         const LeafProbe* known) {
  NewestState state;
  if (known != nullptr) {  // the sorted block is as it was, but not the log
    state.probe = *known;
    state.probe.log_matches =
        leaf.matching_slots(map.kit, leaf.log_entries(leaf.lock_word()), key.tag());
  } else {
    state.probe = probe_leaf(leaf, key, map.kit);
  }
  state.position = lower_bound(leaf, key, state.probe);
  if (const auto entry = find_in_log(leaf, key, state.probe.log_matches, kNewest)) {
    state.existed = !entry->erase();
    state.version = entry->version;
    state.out_of_line = entry->out_of_line;
    state.value = {entry->value, entry->value_bytes};
  } else if (state.position.exact) {
    const SortedItem item = leaf.sorted_item(state.position.offset);
    state.existed = true;
    state.version = leaf.created();
    state.out_of_line = item.out_of_line;
    state.value = {item.value, item.value_bytes};
  }
  return state;
}

std::string_view stored_value(const MapCore& map, std::string_view value_ref) {
  wire::ValueRef value;
  std::memcpy(&value, value_ref.data(), sizeof value);
  const wire::Ref ref{value.ref};
  const std::byte* at = map.at(ref.offset());
  return {reinterpret_cast<const char*>(at) + sizeof(wire::ValueHeader), value.bytes};
}

bool holds(const MapCore& map, const NewestState& state, const Condition& condition) {
  using Kind = ConditionKind;
  switch (condition.kind) {
    case Kind::none: return true;
    case Kind::absent: return !state.existed;
    case Kind::present: return state.existed;
    case Kind::version: return state.existed && state.version == condition.version;
    case Kind::value:
      return state.existed &&
             (state.out_of_line ? stored_value(map, state.value) : state.value) == condition.value;
  }
  return false;
}

namespace {

// Returns false if what is there is no number.
bool add_to(const NewestState& state, Addition& addition) {
  std::uint64_t number = 0;
  if (state.existed) {
    if (state.out_of_line || state.value.size() != sizeof number) return false;
    std::memcpy(&number, state.value.data(), sizeof number);
  }
  addition.sum = number + addition.amount;  // wraps round, as counters do
  return true;
}

}  // namespace

WriteOutcome decide(const MapCore& map, const NewestState& state, const WriteIntent& intent) {
  WriteOutcome outcome;
  outcome.existed = state.existed;
  if (!holds(map, state, intent.condition)) {
    outcome.status = WriteStatus::condition_failed;
  } else if (intent.addition != nullptr && !add_to(state, *intent.addition)) {
    const std::string_view found = state.out_of_line ? stored_value(map, state.value) : state.value;
    outcome.status = WriteStatus::refused;
    outcome.refusal = Code::invalid_argument;
    outcome.refused_detail = static_cast<std::uint32_t>(found.size());
  } else {
    outcome.status = WriteStatus::done;
    outcome.applied = takes_effect(intent.op, state.existed);
  }
  return outcome;
}

std::byte* append_entry(std::byte* leaf, const Geometry& g, const WriteIntent& intent,
                        const NewestState& state, std::uint32_t index, std::uint32_t units) {
  const NodeView node(leaf, g);
  const bool erase = intent.op == Op::erase;
  const auto place = static_cast<std::uint16_t>(state.position.offset);
  LogOrder order = order_of(node, *intent.key, index, place);
  if (planted(Bug::wrong_order_hint)) order.hint = index;
  wire::LogEntry entry{};
  entry.order_hint = static_cast<std::uint8_t>(order.hint);
  entry.flags = static_cast<std::uint8_t>((erase ? wire::kLogErase : 0) |
                                          (state.position.exact ? wire::kLogShadowsSorted : 0) |
                                          (order.same_key_next ? wire::kLogSameKeyNext : 0));
  entry.key_bytes = static_cast<std::uint16_t>(intent.key->bytes());
  const std::size_t value_bytes = erase ? 0 : intent.value.size();
  entry.value_bytes =
      intent.out_of_line && !erase ? wire::kOutOfLine : static_cast<std::uint16_t>(value_bytes);
  std::byte* at = leaf + node.log_begin() + units * wire::kLogUnitBytes;
  std::memcpy(at + sizeof entry.version,
              reinterpret_cast<const std::byte*>(&entry) + sizeof entry.version,
              sizeof entry - sizeof entry.version);
  std::memcpy(at + sizeof entry, intent.key->view().data(), intent.key->bytes());
  const auto slot = static_cast<std::uint16_t>(intent.key->tag() << 8 | units);
  if (planted(Bug::version_before_payload)) publish_too_early(leaf, g, index, slot, at);
  reached(Moment::before_payload);
  if (value_bytes != 0) {
    std::memcpy(at + sizeof entry + intent.key->bytes(), intent.value.data(), value_bytes);
  }
  base::store_shared<std::uint16_t>(leaf + g.places_begin + 2 * index, place);
  base::store_shared<std::uint16_t>(leaf + g.slots_begin + 2 * index, slot);
  return at;
}

void publish_entry(std::byte* version_at, std::uint64_t version) {
  base::store_shared<std::uint64_t>(version_at, version, std::memory_order_release);
}

void apply_to_records(std::vector<Record>& records, const WriteIntent& intent) {
  const std::string_view key = intent.key->view();
  const auto at = std::lower_bound(records.begin(), records.end(), key,
                                   [](const Record& record, std::string_view k) {
                                     return compare_keys(record.key_view(), k) < 0;
                                   });
  const bool present = at != records.end() && at->key_view() == key;
  if (intent.op == Op::erase) {
    if (present) records.erase(at);
    return;
  }
  const Record record = make_record(key, intent.value, intent.out_of_line);
  if (present) {
    *at = record;
  } else {
    records.insert(at, record);
  }
}

std::uint32_t merge_limit(const Geometry& g, std::string_view low, std::string_view high) {
  const std::uint32_t room = leaf_room(g, low, high);
  return room - std::min(g.log_bytes / 2, room / 8);
}

std::uint32_t rebuild_limit(const Geometry& g, std::string_view low, std::string_view high,
                            const WriteIntent& intent) {
  return intent.op == Op::erase ? leaf_room(g, low, high) : merge_limit(g, low, high);
}

std::uint32_t merge_threshold(const Geometry& g) {
  return (g.node_bytes - g.sorted_begin) * 3 / 10;
}

bool empties_leaf(const MapCore& map, const NodeView& leaf, const WriteIntent& intent) {
  return intent.op == Op::erase && leaf.lid() != map.root &&
         leaf.items() <= leaf.log_entries(leaf.lock_word()) + 1;
}

void supersede(std::byte* node, std::uint64_t version, wire::Ref successor) {
  base::store_shared<std::uint64_t>(node + offsetof(wire::NodeHeader, successor_ref),
                                    successor.bits);
  // With versions off there is no version to name; anything but live and 0 will do.
  base::store_shared<std::uint64_t>(node + offsetof(wire::NodeHeader, superseded),
                                    version == 0 ? 1 : version, std::memory_order_release);
}

namespace {

// What is left of a write that is published. `replaced`: its leaf, if the log was merged.
template <class Redo>
void release(Redo& redo, ThreadContext& context, MapCore& map, const WriteIntent& intent,
             const NewestState& state, std::byte* replaced, std::uint64_t version) {
  redo.hand_over(version, RedoMoment::unlocked);
  map.clock.done(version, redo.sequence());
  redo.hand_over(version, RedoMoment::released);
  if (replaced != nullptr) retire_leaf(context, map, replaced, version);
  retire_value(context, map, state, version);
  if (state.existed != (intent.op != Op::erase)) {
    map.items.add(context.index, state.existed ? -1 : 1);
  }
}

template <class Redo>
WriteOutcome write_with(Redo& redo, ThreadContext& context, MapCore& map, std::byte* leaf,
                        const WriteIntent& intent, const LeafProbe* known) {
  WriteOutcome outcome;
  map.clock.admit();
  if (!make_ready(context, map)) {
    outcome.status = WriteStatus::out_of_memory;
    return outcome;
  }
  const std::uint64_t early = planted(Bug::version_before_lock) ? map.clock.take() : 0;
  const auto give_back_early = [&] {
    if (early != 0) map.clock.done(early);
  };
  const auto leave = [&] {
    unlock(leaf);
    give_back_early();
  };
  reached(Moment::before_lock);
  if (!try_lock(leaf)) {
    give_back_early();
    return outcome;
  }
  const NodeView node(leaf, map.geometry);
  if (node.superseded() != wire::kLive || !node.covers(*intent.key)) {
    leave();
    outcome.status = WriteStatus::moved;
    return outcome;
  }
  const NewestState state = newest_state(map, node, *intent.key, known);
  outcome = decide(map, state, intent);
  std::byte* replaced = nullptr;
  if (outcome.applied && empties_leaf(map, node, intent)) {
    leave();
    outcome.applied = false;
    outcome.status = WriteStatus::restructure;
    return outcome;
  }
  if (!outcome.applied) {
    outcome.wait_for = newest_version(node);
    leave();
    return outcome;
  }
  if (log_has_room(node, 1, log_bytes(intent))) {
    append_and_unlock(map, leaf, intent, state, redo, outcome, early);
  } else if (context.cache.reserved(map.node_class) == 0 &&
             !context.cache.reserve(map.node_class, 1)) {
    leave();
    // An erase finds buffers that were put by, where the structure is changed.
    outcome.applied = false;
    outcome.status =
        intent.may_take_spares() ? WriteStatus::restructure : WriteStatus::out_of_memory;
    return outcome;
  } else if (!merge_log(context, map, leaf, intent, state, redo, outcome)) {
    leave();
    outcome.status = WriteStatus::restructure;
    return outcome;
  } else {
    replaced = leaf;
    give_back_early();
  }
  release(redo, context, map, intent, state, replaced, outcome.version);
  return outcome;
}

// A write that finds the leaf locked is tried again before long: its record would be made in vain.
WriteOutcome write_recorded(ThreadContext& context, MapCore& map, std::byte* leaf,
                            const WriteIntent& intent, const LeafProbe* known) {
  WriteOutcome outcome;
  if (NodeView(leaf, map.geometry).lock_word().locked()) return outcome;
  auto redo = WriteRedo::of_writes(map, {&intent, 1});
  if (redo) return write_with(*redo, context, map, leaf, intent, known);
  outcome.status = WriteStatus::refused;
  outcome.refusal = redo.error().code;
  return outcome;
}

}  // namespace

WriteOutcome write_to_leaf(ThreadContext& context, MapCore& map, std::byte* leaf,
                           const WriteIntent& intent, const LeafProbe* known) noexcept {
  if (map.redo() != nullptr) [[unlikely]]
    return write_recorded(context, map, leaf, intent, known);
  NoRedo none;
  return write_with(none, context, map, leaf, intent, known);
}

Result<wire::ValueRef> store_value(ThreadContext& context, MapCore& map, std::string_view value) {
  auto staged = stage_value(context, map, value);
  if (!staged) return std::unexpected(staged.error());
  staged->copy(value.size());
  return take_staged(map, *staged);
}

void discard_value(ThreadContext& context, MapCore& map, const wire::ValueRef& value) {
  const auto size_class = memory::BufferPool::class_of(sizeof(wire::ValueHeader) + value.bytes);
  map.value_bytes.fetch_sub(memory::BufferPool::class_bytes(size_class), std::memory_order_relaxed);
  context.cache.release(wire::Ref{value.ref}.offset(), size_class);
}

void retire_value(ThreadContext& context, MapCore& map, const NewestState& state,
                  std::uint64_t version) noexcept {
  if (!state.existed || !state.out_of_line) return;
  wire::ValueRef value;
  std::memcpy(&value, state.value.data(), sizeof value);
  const auto size_class = memory::BufferPool::class_of(sizeof(wire::ValueHeader) + value.bytes);
  map.value_bytes.fetch_sub(memory::BufferPool::class_bytes(size_class), std::memory_order_relaxed);
  const memory::Retired retired{wire::Ref{value.ref}.offset(), version, size_class, 0};
  if (planted(Bug::value_freed_at_once)) {
    map.store.pool.release(retired.offset, retired.size_class);
    return;
  }
  map.store.reclaimer.retire(map, context.retired, {&retired, 1});
}

}  // namespace espalier::tree
