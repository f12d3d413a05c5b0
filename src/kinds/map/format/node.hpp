// SPDX-License-Identifier: Apache-2.0
// The layout of a tree node, shared by all walkers: client, switch, device and host. Drawn in
// docs/formats/node.md; this header is authoritative.
//
// Every node is one buffer of `node_bytes` (a power of two, 512 to 65536) and begins with a
// NodeHeader. All integers are little-endian. Offsets count from the node's first byte.
//
//   leaf      header | log slots | chunk prefixes | chunk starts | log places
//                                                            | sorted block | log block | fences
//   interior  header |             group prefixes |             groups | key slots | keys | fences
//
// [Honeycomb §3.1] with these differences: shortcuts are 16-bit normalised key prefixes instead of
// full keys, so no key is stored twice and a point read touches fewer lines; versions in the log
// are stored whole; LIDs have 4 bytes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "wire/item_limits.hpp"
#include "wire/ref.hpp"

namespace espalier::wire {

static_assert(std::endian::native == std::endian::little, "the formats are little-endian");

/// Logical node id: names a node independently of its buffer. 0 names none.
using Lid = std::uint32_t;

inline constexpr std::uint32_t kNodeBytesMin = 512;
inline constexpr std::uint32_t kNodeBytesMax = 65536;
inline constexpr std::uint32_t kKeyBytesMax = 460;
inline constexpr std::uint32_t kInlineValueBytesMax = 469;

enum class NodeKind : std::uint8_t { invalid = 0, leaf = 1, interior = 2 };

/// The first two cache lines of a node. The first decides whether the node may answer and which
/// chunk to read. The second is for scans, writers, and walkers at a wrong node.
struct NodeHeader {
  std::uint32_t map_id;
  std::uint32_t generation;       // see BufferHeader
  std::uint64_t created;          // version at which this state of the node was created
  std::uint64_t superseded;       // kLive, or the version at which it stopped being current
  std::uint64_t low_key_prefix;   // first 8 bytes of the low fence, zero padded, big-endian
  std::uint64_t high_key_prefix;  // same of the high fence; all ones if there is none
  std::uint64_t key_prefix_base;  // key prefixes are normalised: see key_prefix_shift
  std::uint64_t lock;             // see LockWord
  NodeKind kind;
  std::uint8_t level;  // 0 in leaves
  std::uint8_t
      key_prefix_shift;        // key prefix = saturate((8 bytes after shared ones) - base) << shift
  std::uint8_t chunks;         // chunks in use (leaf), groups in use (interior)
  std::uint16_t prefix_bytes;  // leading bytes shared by all keys of a leaf; in an interior node
                               // by all separators, as far as there is room
  std::uint16_t sorted_end;    // leaf: end of the sorted block; interior: begin of the key slots

  std::uint64_t old_ref;        // state before `created`; below old2_low if there are two
  std::uint64_t old2_ref;       // after a merge: state before `created` from old2_low on
  std::uint64_t successor_ref;  // set with `superseded`: where the low end of the range went
  Lid lid;
  Lid left;  // neighbours on the leaf level: hints, never trusted
  Lid right;
  std::uint16_t low_bytes;    // length of the low fence; 0: below all keys
  std::uint16_t high_bytes;   // length of the high fence; 0: above all keys
  std::uint16_t fence_begin;  // the low fence begins here, the high fence follows it
  std::uint16_t items;        // items of the sorted block; children of an interior node
  std::uint16_t log_begin;
  std::uint16_t log_end;              // bytes from here on are not log
  std::uint64_t old2_low_key_prefix;  // first 8 bytes of the low fence of old2
  std::uint64_t self_ref;             // this buffer, for readers without a reference (READs by key)
};

static_assert(sizeof(NodeHeader) == 128);
static_assert(std::is_trivially_copyable_v<NodeHeader> && std::is_standard_layout_v<NodeHeader>);
static_assert(std::has_unique_object_representations_v<NodeHeader>);
static_assert(offsetof(NodeHeader, generation) == offsetof(BufferHeader, generation));
static_assert(offsetof(NodeHeader, created) == offsetof(BufferHeader, created));
static_assert(offsetof(NodeHeader, superseded) == offsetof(BufferHeader, superseded));
static_assert(offsetof(NodeHeader, low_key_prefix) == 24);
static_assert(offsetof(NodeHeader, high_key_prefix) == 32);
static_assert(offsetof(NodeHeader, key_prefix_base) == 40);
static_assert(offsetof(NodeHeader, lock) == 48);
static_assert(offsetof(NodeHeader, kind) == 56);
static_assert(offsetof(NodeHeader, prefix_bytes) == 60);
static_assert(offsetof(NodeHeader, sorted_end) == 62);
static_assert(offsetof(NodeHeader, old_ref) == 64);
static_assert(offsetof(NodeHeader, successor_ref) == 80);
static_assert(offsetof(NodeHeader, lid) == 88);
static_assert(offsetof(NodeHeader, low_bytes) == 100);
static_assert(offsetof(NodeHeader, log_begin) == 108);
static_assert(offsetof(NodeHeader, old2_low_key_prefix) == 112);
static_assert(offsetof(NodeHeader, self_ref) == 120);

/// Lock bit, sequence and log fill in one word, so that a writer publishes an entry, advances the
/// sequence and unlocks with one store [Honeycomb §3.4].
///
///   63       48 47      40 39      32 31         1   0
///  +-----------+----------+----------+------------+------+
///  | 0         | log units| entries  | sequence   |locked|
///  +-----------+----------+----------+------------+------+
struct LockWord {
  std::uint64_t bits = 0;
  [[nodiscard]] constexpr bool locked() const { return (bits & 1) != 0; }
  [[nodiscard]] constexpr std::uint32_t entries() const {
    return static_cast<std::uint32_t>(bits >> 32) & 0xFF;
  }
  [[nodiscard]] constexpr std::uint32_t units() const {
    return static_cast<std::uint32_t>(bits >> 40) & 0xFF;
  }
  [[nodiscard]] constexpr std::uint32_t sequence() const {
    return static_cast<std::uint32_t>(bits & 0xFFFFFFFE);
  }
  [[nodiscard]] constexpr LockWord with_lock() const { return {bits | 1}; }
  /// Unlocked, with the sequence advanced and this fill of the log.
  [[nodiscard]] constexpr LockWord next(std::uint32_t entries, std::uint32_t units) const {
    return {((bits + 2) & 0xFFFFFFFE) | (std::uint64_t{entries} << 32) |
            (std::uint64_t{units} << 40)};
  }
};

/// An interior node is never locked. The upper 16 bits of its lock word count the leading bytes
/// that both fences share; the bytes behind them, up to prefix_bytes, are stored before the groups.
struct FencesShare {
  std::uint64_t bits = 0;
  [[nodiscard]] static constexpr FencesShare of(std::uint32_t bytes) {
    return {std::uint64_t{bytes} << 48};
  }
  [[nodiscard]] constexpr std::uint32_t bytes() const {
    return static_cast<std::uint32_t>(bits >> 48);
  }
};

/// A log slot: 8 bits of the key's hash above, the entry's position in units of 8 bytes from
/// log_begin below. All ones: not written yet.
///
/// A log place, 2 bytes per slot: the offset of the first sorted item with a key not below the
/// entry's; sorted_end if there is none. Places lie apart from slots because writers and scans read
/// all places but few entries. All ones: not written yet.
inline constexpr std::uint32_t kLogUnitBytes = 8;
inline constexpr std::uint32_t kLogSlotUnwritten = 0xFF;  // the position in a slot of all ones
inline constexpr std::uint32_t kLogSlotsMax = 32;
inline constexpr std::uint32_t kLogBytesMax = 2048;

/// One entry of the log block, at a multiple of 8 bytes; key and value follow. The block is filled
/// with 0xFF beforehand and `version` is written last, so that an unwritten or torn entry reads as
/// a version far in the future (DESIGN §2.1 rule 3).
struct LogEntry {
  std::uint64_t version;
  std::uint16_t reserved;   // 0
  std::uint8_t order_hint;  // its rank in key order among earlier entries
  std::uint8_t flags;
  std::uint16_t key_bytes;
  std::uint16_t value_bytes;  // kOutOfLine: a ValueRef follows the key
};
static_assert(sizeof(LogEntry) == 16 && std::has_unique_object_representations_v<LogEntry>);

inline constexpr std::uint8_t kLogErase = 1;          // the key is erased as of this version
inline constexpr std::uint8_t kLogShadowsSorted = 2;  // the sorted item at its place has its key
inline constexpr std::uint8_t kLogSameKeyNext = 4;    // the next entry in key order has its key

/// A sorted item: key length, value length (1 byte each below 128, else 2 with the top bit of the
/// first set, big-endian), key, value.
inline constexpr std::uint16_t kOutOfLine = 0x7FFF;

/// References a value that lies in a buffer of its own.
struct ValueRef {
  std::uint64_t ref;
  std::uint64_t bytes;
};
static_assert(sizeof(ValueRef) == 16 && std::has_unique_object_representations_v<ValueRef>);

/// Precedes the bytes of an out-of-line value.
struct ValueHeader {
  std::uint32_t map_id;
  std::uint32_t generation;
  std::uint64_t created;
  std::uint64_t superseded;
  std::uint64_t bytes;
};
static_assert(sizeof(ValueHeader) == 32 && std::has_unique_object_representations_v<ValueHeader>);

/// 16 children of an interior node, the unit that a walker reads. Unused key prefixes are all ones.
inline constexpr std::uint32_t kGroupChildren = 16;
struct ChildGroup {
  std::uint32_t key_prefixes[kGroupChildren];
  Lid children[kGroupChildren];
};
static_assert(sizeof(ChildGroup) == 128 && std::has_unique_object_representations_v<ChildGroup>);

}  // namespace espalier::wire
