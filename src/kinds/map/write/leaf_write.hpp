// SPDX-License-Identifier: Apache-2.0
// Writing to one leaf: looking at the newest state under the leaf's lock, appending to its log, or
// merging the log into a new sorted block [Honeycomb §3.4, §3.5].
//
// What would change the tree's structure (a leaf that is too full or too empty) is not done here;
// the caller goes to structure.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kinds/map/node/leaf_builder.hpp"
#include "kinds/map/node/leaf_search.hpp"
#include "kinds/map/walk/walk_request.hpp"
#include "kinds/map/write/map_core.hpp"
#include "store/thread_context.hpp"

namespace espalier::tree {

/// One write of one key, with everything that may fail or take time already done.
struct WriteIntent {
  Op op = Op::put;  // put, insert, update, erase
  const SearchKey* key = nullptr;
  std::string_view value;  // inline bytes, or the bytes of a ValueRef
  bool out_of_line = false;
  Condition condition{};
  Addition* addition = nullptr;  // of a put: makes its value, 8 bytes, when the write is decided
  /// A put that must not fail, of what a store of this size had: it may take what is put by for
  /// erases, too.
  bool takes_spares = false;

  [[nodiscard]] bool may_take_spares() const { return takes_spares || op == Op::erase; }
};

enum class WriteStatus : std::uint8_t {
  done,              ///< see the outcome: applied or not
  busy,              ///< somebody else holds the leaf: try again
  moved,             ///< this is no longer the key's leaf: walk again
  restructure,       ///< the leaf must be split or merged
  condition_failed,  ///< nothing was changed
  out_of_memory,     ///< nothing was changed
  refused,           ///< as the outcome's refusal says: nothing was changed
};

struct WriteOutcome {
  WriteStatus status = WriteStatus::busy;
  bool applied = false;
  bool existed = false;
  Code refusal = Code::invalid;      // if refused: what the map's sink says for want of room for
                                     // its record, or invalid_argument of an addition
  std::uint32_t refused_detail = 0;  // of that
  std::uint64_t version = 0;         // under which it was written
  std::uint64_t wait_for = 0;        // the answer may be given when this is released (rule 6)
};

/// The newest state of a key in a locked leaf.
struct NewestState {
  LeafProbe probe;
  Position position;  // in the sorted block
  bool existed = false;
  bool out_of_line = false;
  std::string_view value;     // inline bytes, or the bytes of a ValueRef
  std::uint64_t version = 0;  // of the item; without one, of the erase mark or 0
};

/// Requires: the leaf is locked by the caller.
/// `known`: where the key is in the sorted block, as probe_leaf() said of the same leaf.
NewestState newest_state(const MapCore& map, const NodeView& leaf, const SearchKey& key,
                         const LeafProbe* known = nullptr);

/// Whether the condition holds.
bool holds(const MapCore& map, const NewestState& state, const Condition& condition);

/// Whether a write of this kind takes effect on a key that exists or not.
[[nodiscard]] constexpr bool takes_effect(Op op, bool existed) {
  return op == Op::put || (op == Op::insert ? !existed : existed);
}

/// Decides by the newest state of its key whether a write takes effect, and makes the value of one
/// that adds. Nothing in the map is changed. The outcome's status: done, condition_failed, refused.
/// Requires: the leaf is locked by the caller.
WriteOutcome decide(const MapCore& map, const NewestState& state, const WriteIntent& intent);

/// The newest version in the leaf, released or not.
std::uint64_t newest_version(const NodeView& leaf);

/// Locks a leaf; false if it is locked or changed meanwhile.
bool try_lock(std::byte* leaf);
/// Locks a leaf, waiting for writers of it (which never wait while they hold it).
void lock_leaf(std::byte* leaf);
/// Unlocks, with this fill of the log.
void unlock(std::byte* leaf, std::uint32_t entries, std::uint32_t units);
/// Unlocks a leaf that was not changed.
void unlock(std::byte* leaf);

/// Bytes of log that a write takes.
[[nodiscard]] inline std::uint32_t log_bytes(Op op, std::size_t key_bytes,
                                             std::size_t value_bytes) {
  const std::size_t bytes =
      sizeof(wire::LogEntry) + key_bytes + (op == Op::erase ? 0 : value_bytes);
  return static_cast<std::uint32_t>((bytes + 7) & ~std::size_t{7});
}
[[nodiscard]] inline std::uint32_t log_bytes(const WriteIntent& intent) {
  return log_bytes(intent.op, intent.key->bytes(), intent.value.size());
}
/// Whether writes of so many bytes and entries still fit a leaf's log, of which `lock` says what is
/// used: for sure if the caller holds the lock.
[[nodiscard]] inline bool log_has_room(const NodeView& leaf, wire::LockWord lock,
                                       std::uint32_t entries, std::uint32_t bytes) {
  const std::uint32_t used = lock.units() * wire::kLogUnitBytes;
  // The position of an entry must fit 8 bits, and 0xFF stands for none.
  return lock.entries() + entries <= leaf.geometry().log_slots &&
         leaf.log_begin() + used + bytes <= leaf.log_end() &&
         (used + bytes) / wire::kLogUnitBytes <= 0xFF;
}
/// The same of a leaf that the caller has locked.
[[nodiscard]] inline bool log_has_room(const NodeView& leaf, std::uint32_t entries,
                                       std::uint32_t bytes) {
  return log_has_room(leaf, leaf.lock_word(), entries, bytes);
}

/// Writes an entry behind the log's last one, all but its version; returns where the version goes.
/// The caller publishes it with publish_entry and counts it when it unlocks.
std::byte* append_entry(std::byte* leaf, const Geometry& g, const WriteIntent& intent,
                        const NewestState& state, std::uint32_t index, std::uint32_t units);
void publish_entry(std::byte* version_at, std::uint64_t version);

/// Adds the effect of a write to gathered records.
void apply_to_records(std::vector<Record>& records, const WriteIntent& intent);

/// Sorted bytes that a leaf may hold and still keep some room for its log.
[[nodiscard]] std::uint32_t merge_limit(const Geometry& g, std::string_view low,
                                        std::string_view high);
/// Sorted bytes with which a leaf is rebuilt as one by this write. An erase never splits a leaf:
/// that could need memory where it is to give some back.
[[nodiscard]] std::uint32_t rebuild_limit(const Geometry& g, std::string_view low,
                                          std::string_view high, const WriteIntent& intent);
/// Below so many sorted bytes a leaf should be merged with a neighbour.
[[nodiscard]] std::uint32_t merge_threshold(const Geometry& g);

/// Whether this erase may leave nothing in a leaf but marks: then it is time to merge it away, for
/// no further write may come. Requires: the leaf is locked.
[[nodiscard]] bool empties_leaf(const MapCore& map, const NodeView& leaf,
                                const WriteIntent& intent);

/// Marks a node as superseded by `version` and names its successor.
void supersede(std::byte* node, std::uint64_t version, wire::Ref successor);

/// Does the write in `leaf` if that needs no change of structure. `known`: see newest_state.
/// Cost of records: a branch where the map has no sink; else the sink's, and a copy of the value.
/// Once the leaf is locked it asks the heap for nothing.
/// Requires: the worker's epoch is exposed since before the leaf was found.
WriteOutcome write_to_leaf(ThreadContext& context, MapCore& map, std::byte* leaf,
                           const WriteIntent& intent, const LeafProbe* known = nullptr) noexcept;

/// Copies a value into a buffer of its own. Errors: out_of_memory.
Result<wire::ValueRef> store_value(ThreadContext& context, MapCore& map, std::string_view value);
/// Takes back a stored value that was not used.
void discard_value(ThreadContext& context, MapCore& map, const wire::ValueRef& value);
/// Retires the out-of-line value (if it is one) that was replaced at `version`. Requires: then an
/// element in the context's stock.
void retire_value(ThreadContext& context, MapCore& map, const NewestState& state,
                  std::uint64_t version) noexcept;
/// The bytes of an out-of-line value; empty if the reference is stale.
std::string_view stored_value(const MapCore& map, std::string_view value_ref);

}  // namespace espalier::tree
