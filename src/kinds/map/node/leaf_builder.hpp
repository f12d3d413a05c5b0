// SPDX-License-Identifier: Apache-2.0
// Builds leaves: gathers the newest items of old leaves and lays out a new leaf.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kinds/map/node/node_view.hpp"

namespace espalier::tree {

/// One item to be placed in a new leaf. Points into old leaves, which must outlive it.
struct Record {
  const char* key = nullptr;
  const char* value = nullptr;    // inline bytes, or a ValueRef
  const char* encoded = nullptr;  // the item as encoded in a sorted block; null if it is not
  std::uint16_t key_bytes = 0;
  std::uint16_t value_bytes = 0;    // of what `value` points to
  std::uint16_t encoded_bytes = 0;  // without padding
  bool out_of_line = false;

  [[nodiscard]] std::string_view key_view() const { return {key, key_bytes}; }
};

Record make_record(std::string_view key, std::string_view value, bool out_of_line);

/// Bytes that a record takes in a sorted block.
[[nodiscard]] inline std::uint32_t placed_bytes(const Record& record, const Geometry& g) {
  return (record.encoded_bytes + g.unit_mask) & ~g.unit_mask;
}
[[nodiscard]] std::uint64_t placed_bytes(std::span<const Record> records, const Geometry& g);

/// Appends the newest state of a leaf, without erased items, in key order.
/// Requires: the leaf is locked, or cannot change.
void gather_newest(const NodeView& leaf, std::vector<Record>& records);

/// The order of a leaf's first `entries` log entries by key: see log_order.hpp.
void sort_log(const NodeView& leaf, std::uint32_t entries, std::uint8_t* order);

/// Calls `take` with the newest log entry of each key, in key order, erase marks included.
/// Requires: the leaf is locked, or cannot change.
template <class Take>
inline void for_newest_entries(const NodeView& leaf, const Take& take) {
  std::uint8_t order[wire::kLogSlotsMax];
  const std::uint32_t entries = leaf.log_entries(leaf.lock_word());
  sort_log(leaf, entries, order);
  for (std::uint32_t i = 0; i < entries; ++i) {
    const LogItem item = leaf.log_item(order[i], kNewest);
    take(item);
    // Older entries of the same key follow the newest one.
    std::uint8_t flags = item.flags;
    while ((flags & wire::kLogSameKeyNext) != 0 && i + 1 < entries) {
      flags = leaf.log_item(order[++i], kNewest).flags;
    }
  }
}

/// Calls `take(reference)` with the ValueRef's bytes of each out-of-line value in a leaf's newest
/// state. Cost: for each such value in the sorted block, a scan of the log's places.
/// Requires: the leaf cannot change.
template <class Take>
inline void for_stored_values(const NodeView& leaf, const Take& take) {
  std::uint16_t replaced[wire::kLogSlotsMax];  // places in the sorted block
  std::uint32_t count = 0;
  for_newest_entries(leaf, [&](const LogItem& item) {
    if ((item.flags & wire::kLogShadowsSorted) != 0) {
      replaced[count++] = static_cast<std::uint16_t>(item.place);
    }
    if (!item.erase() && item.out_of_line) take(item.value);
  });
  std::uint32_t offset = leaf.geometry().sorted_begin;
  while (offset < leaf.sorted_end()) {
    const SortedItem item = leaf.sorted_item(offset);
    if (item.out_of_line && !std::count(replaced, replaced + count, offset)) take(item.value);
    offset = item.end;
  }
}

/// Room for the sorted block and the log of a leaf with these fences, in bytes.
[[nodiscard]] std::uint32_t leaf_room(const Geometry& g, std::string_view low,
                                      std::string_view high);

/// The header fields of a new node that do not depend on its items.
struct NodeFrame {
  std::uint32_t map_id = 0;
  wire::Lid lid = 0;
  wire::Lid left = 0;
  wire::Lid right = 0;
  std::string_view low;
  std::string_view high;
  wire::Ref old_ref{};
  wire::Ref old2_ref{};
  std::uint64_t old2_low_key_prefix = 0;
  wire::Ref self{};  // the buffer that it is laid out in
};

/// The extent of a leaf's sorted block.
struct SortedBlock {
  std::uint32_t end = 0;
  std::uint32_t items = 0;
  KeyPrefixMap map{0, 63};
};

/// Writes all of a leaf but its sorted block, chunk key prefixes and chunk starts; the log is
/// empty.
void finish_leaf(std::byte* buffer, const Geometry& g, const NodeFrame& frame,
                 const SortedBlock& sorted);

/// Writes a record as an item of `placed` bytes, padding included.
void place_record(std::byte* at, const Record& record, std::uint32_t placed);

/// Lays out a leaf with an empty log in `buffer`. Walkers reject the buffer until go_live().
/// Requires: the records fit leaf_room, ascend, and lie in [low, high).
void build_leaf(std::byte* buffer, const Geometry& g, std::span<const Record> records,
                const NodeFrame& frame);

/// Writes the first 128 bytes of a buffer except generation, created and superseded, as atomics: a
/// walker with a stale hint may read them at any time. It reads no other bytes before these admit
/// it.
void write_shared_head(std::byte* buffer, std::uint32_t map_id, const std::byte* head);
/// As write_shared_head(), for a node.
void write_header(std::byte* buffer, const wire::NodeHeader& header);

/// Bytes reserved at the end of a node for its fences; at least 8, so that no offset in a 64 KiB
/// node reaches 65536.
[[nodiscard]] constexpr std::uint32_t fence_room(std::string_view low, std::string_view high) {
  return std::max(static_cast<std::uint32_t>(low.size() + high.size()), 8u);
}
/// Writes the fences at the end of the node and their fields in the header.
void write_fences(std::byte* buffer, const Geometry& g, const NodeFrame& frame,
                  wire::NodeHeader& header);

/// Publishes a built node: walkers may use it from now on.
void go_live(std::byte* buffer, std::uint64_t created);

}  // namespace espalier::tree
