// SPDX-License-Identifier: Apache-2.0
// Reads a node's bytes: visibility, chunks, items, log entries, children.
//
// The bytes may come from anywhere (this process, another one, a network), so no offset or length
// is trusted: each is read once, clamped to the node, then used. A corrupt node can make a walk
// find nothing or give up (`sane()`), never read outside the node.
//
// Concurrency: a node may be appended to and superseded while it is read. The fields that change
// (superseded, lock, neighbours, log slots and places, log entries) are read as atomics; a log
// entry's other bytes only once its version shows that it is complete. All else is constant once a
// node is live.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/atomic_bytes.hpp"
#include "kinds/map/node/geometry.hpp"
#include "kinds/map/node/search.hpp"
#include "kinds/map/node/search_key.hpp"
#include "kinds/map/format/node.hpp"

namespace espalier::tree {

/// What a node means to a walk that reached it (DESIGN idea 1).
enum class Visibility : std::uint8_t {
  answers,  ///< it covers the key at the read version
  older,    ///< it was created later: follow the old-version reference
  newer,    ///< it was superseded before the read version: go to the successor
  outside,  ///< a valid node that does not cover the key
  nothing,  ///< not a node of this map, or not the expected one: restart
};

/// The read version of writers, which need the newest state, released or not.
inline constexpr std::uint64_t kNewest = wire::kLive - 1;

/// An item of the sorted block, as found in the bytes.
struct SortedItem {
  std::string_view key;
  const char* value = nullptr;    // inline bytes, or a ValueRef
  std::uint32_t value_bytes = 0;  // of the inline bytes
  bool out_of_line = false;
  std::uint32_t end = 0;  // offset behind the item's last byte
};

/// An entry of the log block, as found in the bytes.
struct LogItem {
  std::uint64_t version = wire::kLive;
  std::string_view key;
  const char* value = nullptr;
  std::uint32_t value_bytes = 0;
  std::uint16_t place = 0;  // of the first sorted item not below it
  std::uint8_t order_hint = 0;
  std::uint8_t flags = 0;
  bool out_of_line = false;
  [[nodiscard]] bool erase() const { return (flags & wire::kLogErase) != 0; }
};

class NodeView {
 public:
  NodeView(const std::byte* at, const Geometry& geometry) : at_(at), g_(&geometry) {}

  [[nodiscard]] const std::byte* bytes() const { return at_; }
  [[nodiscard]] const Geometry& geometry() const { return *g_; }

  template <class T>
  [[nodiscard]] T load(T wire::NodeHeader::*member) const {
    const auto* header = reinterpret_cast<const wire::NodeHeader*>(at_);
    return base::load_shared<T>(reinterpret_cast<const std::byte*>(&(header->*member)));
  }

  // --- header fields -------------------------------------------------------------------------
  [[nodiscard]] std::uint32_t map_id() const { return load(&wire::NodeHeader::map_id); }
  [[nodiscard]] std::uint32_t generation() const { return load(&wire::NodeHeader::generation); }
  [[nodiscard]] std::uint64_t created() const { return load(&wire::NodeHeader::created); }
  [[nodiscard]] std::uint64_t superseded() const {
    return base::load_shared<std::uint64_t>(at_ + offsetof(wire::NodeHeader, superseded),
                                            std::memory_order_acquire);
  }
  [[nodiscard]] wire::LockWord lock_word() const {
    return {base::load_shared<std::uint64_t>(at_ + offsetof(wire::NodeHeader, lock),
                                             std::memory_order_acquire)};
  }
  [[nodiscard]] bool leaf() const { return load(&wire::NodeHeader::kind) == wire::NodeKind::leaf; }
  [[nodiscard]] std::uint32_t level() const { return load(&wire::NodeHeader::level); }
  [[nodiscard]] std::uint64_t low_key_prefix() const {
    return load(&wire::NodeHeader::low_key_prefix);
  }
  [[nodiscard]] std::uint64_t high_key_prefix() const {
    return load(&wire::NodeHeader::high_key_prefix);
  }
  [[nodiscard]] KeyPrefixMap key_prefix_map() const {
    return {load(&wire::NodeHeader::key_prefix_base),
            load(&wire::NodeHeader::key_prefix_shift) & 63u};
  }
  [[nodiscard]] std::uint32_t prefix_bytes() const { return load(&wire::NodeHeader::prefix_bytes); }
  [[nodiscard]] std::uint32_t chunks() const {
    const std::uint32_t chunks = load(&wire::NodeHeader::chunks);
    return chunks < g_->chunks_max ? chunks : g_->chunks_max;
  }
  [[nodiscard]] std::uint32_t sorted_end() const {
    return clamp_sorted_end(load(&wire::NodeHeader::sorted_end));
  }
  [[nodiscard]] std::uint32_t clamp_sorted_end(std::uint32_t end) const {
    return end < g_->sorted_begin ? g_->sorted_begin
                                  : (end < g_->node_bytes - 8 ? end : g_->node_bytes - 8);
  }
  [[nodiscard]] wire::Ref old_ref() const { return {load(&wire::NodeHeader::old_ref)}; }
  [[nodiscard]] wire::Ref old2_ref() const { return {load(&wire::NodeHeader::old2_ref)}; }
  [[nodiscard]] std::uint64_t old2_low_key_prefix() const {
    return load(&wire::NodeHeader::old2_low_key_prefix);
  }
  [[nodiscard]] wire::Ref successor_ref() const {
    return {base::load_shared<std::uint64_t>(at_ + offsetof(wire::NodeHeader, successor_ref))};
  }
  /// The reference that the node records of its own buffer.
  [[nodiscard]] wire::Ref self_ref() const { return {load(&wire::NodeHeader::self_ref)}; }
  [[nodiscard]] wire::Lid lid() const { return load(&wire::NodeHeader::lid); }
  [[nodiscard]] wire::Lid left() const {
    return base::load_shared<wire::Lid>(at_ + offsetof(wire::NodeHeader, left));
  }
  [[nodiscard]] wire::Lid right() const {
    return base::load_shared<wire::Lid>(at_ + offsetof(wire::NodeHeader, right));
  }
  /// Average size of a sorted item, at least 1.
  [[nodiscard]] std::uint32_t item_bytes() const {
    const std::uint32_t items = this->items();
    return (sorted_end() - g_->sorted_begin) / (items != 0 ? items : 1) + 1;
  }
  [[nodiscard]] std::uint32_t items() const { return load(&wire::NodeHeader::items); }
  [[nodiscard]] std::uint32_t fence_begin() const { return load(&wire::NodeHeader::fence_begin); }
  [[nodiscard]] std::string_view low_fence() const {
    return text(load(&wire::NodeHeader::fence_begin), load(&wire::NodeHeader::low_bytes));
  }
  /// Empty: the node is unbounded above.
  [[nodiscard]] std::string_view high_fence() const {
    const std::uint32_t low_bytes = load(&wire::NodeHeader::low_bytes);
    return text(load(&wire::NodeHeader::fence_begin) + low_bytes,
                load(&wire::NodeHeader::high_bytes));
  }
  [[nodiscard]] bool has_high_fence() const { return load(&wire::NodeHeader::high_bytes) != 0; }

  // --- coverage ------------------------------------------------------------------------------
  // low <= key < high. Key prefixes usually decide.
  [[nodiscard]] bool covers(const SearchKey& key) const {
    const std::uint64_t head = key.prefix();
    const bool above_low =
        head > low_key_prefix() ||
        (head == low_key_prefix() && compare_same_head(key.view(), low_fence()) >= 0);
    const bool below_high =
        head < high_key_prefix() || (head == high_key_prefix() && below_high_fence(key));
    return above_low && below_high;
  }
  /// low < key <= high, for descending walks (rule 9). An empty `key` stands for the end.
  [[nodiscard]] bool covers_descending(const SearchKey& key) const {
    if (key.bytes() == 0) return !has_high_fence();
    return compare_keys(key.view(), low_fence()) > 0 &&
           (!has_high_fence() || compare_keys(key.view(), high_fence()) <= 0);
  }
  // --- chunks and items of a leaf ------------------------------------------------------------
  [[nodiscard]] std::uint16_t chunk_key_prefix(std::uint32_t chunk) const {
    return base::load_plain<std::uint16_t>(at_ + g_->key_prefixes_begin + 2 * chunk);
  }
  /// Offset of the first item that begins in `chunk`; 0 if none does.
  [[nodiscard]] std::uint32_t chunk_start(std::uint32_t chunk) const {
    return chunk_start(chunk, sorted_end());
  }
  [[nodiscard]] std::uint32_t chunk_start(std::uint32_t chunk, std::uint32_t end) const {
    const auto start = std::to_integer<std::uint32_t>(at_[g_->starts_begin + chunk]);
    if (start == 0xFF) return 0;
    const std::uint32_t offset =
        g_->sorted_begin + (chunk << g_->chunk_shift) + (start << g_->unit_shift);
    return offset < end ? offset : 0;
  }
  /// End of the items of `chunk`: the first item of the next chunk that has one.
  [[nodiscard]] std::uint32_t chunk_end(std::uint32_t chunk) const {
    return chunk_end(chunk, chunks(), sorted_end());
  }
  [[nodiscard]] std::uint32_t chunk_end(std::uint32_t chunk, std::uint32_t chunks,
                                        std::uint32_t end) const {
    for (std::uint32_t next = chunk + 1; next < chunks; ++next) {
      if (const std::uint32_t start = chunk_start(next, end); start != 0) return start;
    }
    return end;
  }

  /// The item at `offset` of the sorted block. A malformed item ends at sorted_end and has no key.
  /// Requires: offset < sorted_end().
  [[nodiscard]] SortedItem sorted_item(std::uint32_t offset) const {
    return sorted_item(offset, sorted_end());
  }
  /// The same for a caller that knows sorted_end().
  [[nodiscard]] SortedItem sorted_item(std::uint32_t offset, std::uint32_t end) const {
    const auto* at = reinterpret_cast<const unsigned char*>(at_ + offset);
    const auto lengths = base::load_plain<std::uint16_t>(at_ + offset);
    std::uint32_t key_bytes = lengths & 0xFFu;
    std::uint32_t value_bytes = lengths >> 8;
    std::uint32_t header = 2;
    SortedItem item;
    item.end = end;
    if ((lengths & 0x8080) != 0) [[unlikely]] {
      if (offset + 4 > end) return item;
      header = read_long_lengths(at, key_bytes, value_bytes);
      item.out_of_line = value_bytes == wire::kOutOfLine;
      if (item.out_of_line) value_bytes = sizeof(wire::ValueRef);
    }
    const std::uint32_t item_end = offset + header + key_bytes + value_bytes;
    if (item_end > end) [[unlikely]]
      return item;
    item.key = {reinterpret_cast<const char*>(at + header), key_bytes};
    item.value = reinterpret_cast<const char*>(at + header + key_bytes);
    item.value_bytes = value_bytes;
    const std::uint32_t next = (item_end + g_->unit_mask) & ~g_->unit_mask;
    item.end = next < end ? next : end;
    return item;
  }

  // --- log of a leaf -------------------------------------------------------------------------
  /// The log begins behind the sorted block. The header has log_begin too, but in its second line.
  [[nodiscard]] std::uint32_t log_begin() const {
    return (load(&wire::NodeHeader::sorted_end) + 7u) & ~7u;
  }
  [[nodiscard]] std::uint32_t log_end() const {
    const std::uint32_t end = load(&wire::NodeHeader::log_end);
    return end < g_->node_bytes ? end : g_->node_bytes;
  }
  [[nodiscard]] std::uint32_t log_entries(wire::LockWord lock) const {
    return lock.entries() < g_->log_slots ? lock.entries() : g_->log_slots;
  }
  /// Offset of entry `index`, or 0 if the slot is unwritten or corrupt.
  [[nodiscard]] std::uint32_t log_offset(std::uint32_t index) const {
    // In a copy made line by line, the entry count may be newer than a slot.
    const auto slot = base::load_shared<std::uint16_t>(at_ + g_->slots_begin + 2 * index);
    const std::uint32_t units = slot & 0xFFu;
    const std::uint32_t offset = log_begin() + units * wire::kLogUnitBytes;
    return units != wire::kLogSlotUnwritten && offset >= sizeof(wire::NodeHeader) &&
                   offset + sizeof(wire::LogEntry) <= g_->node_bytes
               ? offset
               : 0;
  }
  /// Entry `index` if its version is at most `read_version`; else one whose version is kLive.
  [[nodiscard]] LogItem log_item(std::uint32_t index, std::uint64_t read_version) const {
    const std::uint32_t offset = log_offset(index);
    if (offset == 0) return {};
    return log_item_at(index, offset, read_version);
  }
  /// The order hint of the entry at `offset`, visible or not.
  [[nodiscard]] std::uint32_t log_hint_at(std::uint32_t offset) const {
    return std::to_integer<std::uint32_t>(at_[offset + offsetof(wire::LogEntry, order_hint)]);
  }
  /// The place of entry `index`.
  [[nodiscard]] std::uint16_t log_place(std::uint32_t index) const {
    return base::load_shared<std::uint16_t>(at_ + g_->places_begin + 2 * index);
  }
  /// log_item() for callers that know log_offset(index).
  [[nodiscard]] LogItem log_item_at(std::uint32_t index, std::uint32_t offset,
                                    std::uint64_t read_version) const {
    LogItem item;
    const auto version = base::load_shared<std::uint64_t>(at_ + offset, std::memory_order_acquire);
    if (version > read_version) return item;
    const auto entry = base::load_plain<wire::LogEntry>(at_ + offset);
    std::uint32_t value_bytes = entry.value_bytes;
    item.out_of_line = value_bytes == wire::kOutOfLine;
    if (item.out_of_line) value_bytes = sizeof(wire::ValueRef);
    const std::uint32_t key_at = offset + static_cast<std::uint32_t>(sizeof(wire::LogEntry));
    if (key_at + entry.key_bytes + value_bytes > g_->node_bytes) return item;
    item.key = text(key_at, entry.key_bytes);
    item.value = reinterpret_cast<const char*>(at_ + key_at + entry.key_bytes);
    item.value_bytes = value_bytes;
    item.place = log_place(index);
    item.order_hint = entry.order_hint;
    item.flags = entry.flags;
    item.version = version;
    return item;
  }
  [[nodiscard]] std::uint64_t matching_slots(const SearchKit& kit, std::uint32_t entries,
                                             std::uint8_t tag) const {
    return entries == 0 ? 0 : kit.match_tags(at_ + g_->slots_begin, entries, tag);
  }

  // --- children of an interior node ----------------------------------------------------------
  [[nodiscard]] std::uint32_t groups() const {
    const std::uint32_t groups = load(&wire::NodeHeader::chunks);
    return groups < g_->groups_max ? groups : g_->groups_max;
  }
  [[nodiscard]] std::uint32_t children() const {
    const std::uint32_t most = groups() * wire::kGroupChildren;
    return items() < most ? items() : most;
  }
  [[nodiscard]] std::uint32_t group_offset(std::uint32_t group) const {
    return g_->groups_begin + group * static_cast<std::uint32_t>(sizeof(wire::ChildGroup));
  }
  [[nodiscard]] wire::Lid child(std::uint32_t index) const {
    const std::uint32_t offset =
        group_offset(index / wire::kGroupChildren) + 64 + 4 * (index % wire::kGroupChildren);
    return offset + 4 <= g_->node_bytes ? base::load_plain<wire::Lid>(at_ + offset) : 0;
  }
  /// The separator at which child `index` begins; of child 0 the empty key.
  [[nodiscard]] std::string_view separator(std::uint32_t index) const {
    const std::uint32_t slot = load(&wire::NodeHeader::sorted_end) + 2 * index;
    if (slot + 2 > g_->node_bytes) return {};
    const std::uint32_t at = base::load_plain<std::uint16_t>(at_ + slot);
    if (at + 2 > g_->node_bytes) return {};
    return text(at + 2, base::load_plain<std::uint16_t>(at_ + at));
  }

 private:
  [[nodiscard]] std::string_view text(std::uint32_t offset, std::uint32_t bytes) const {
    if (offset > g_->node_bytes) return {};
    const std::uint32_t room = g_->node_bytes - offset;
    return {reinterpret_cast<const char*>(at_ + offset), bytes < room ? bytes : room};
  }
  [[nodiscard]] bool below_high_fence(const SearchKey& key) const {
    return !has_high_fence() || compare_same_head(key.view(), high_fence()) < 0;
  }
  static std::uint32_t read_long_lengths(const unsigned char* at, std::uint32_t& key_bytes,
                                         std::uint32_t& value_bytes) {
    std::uint32_t i = 1;
    if ((key_bytes & 0x80) != 0) key_bytes = (key_bytes & 0x7F) << 8 | at[i++];
    value_bytes = at[i++];
    if ((value_bytes & 0x80) != 0) value_bytes = (value_bytes & 0x7F) << 8 | at[i++];
    return i;
  }

  const std::byte* at_;
  const Geometry* g_;
};

}  // namespace espalier::tree
