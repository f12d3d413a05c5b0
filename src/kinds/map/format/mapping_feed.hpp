// SPDX-License-Identifier: Apache-2.0
// The mapping feed of a map: a ring of recent page-table changes, which one-sided readers READ.
// Layout: docs/formats/mapping_feed.md; purpose: docs/design/mapping-feed.md.
//
// Entry number i, counted from 0 since the ring was created, lies at slot i % kFeedEntries. Entries
// are hints: a reader concludes only that a node may have moved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "kinds/map/format/map_header.hpp"

namespace espalier::wire {

inline constexpr std::uint64_t kFeedMagic = 0x4445454652494C45;  // "ELIRFEED", low byte first
inline constexpr std::uint32_t kFeedFormat = 1;

struct FeedHeader {
  std::uint32_t map_id;
  std::uint32_t generation;
  std::uint64_t created;     // kNoNode
  std::uint64_t superseded;  // kLive
  std::uint64_t magic;
  std::uint32_t format;
  std::uint32_t entries;  // kFeedEntries
  std::uint64_t reserved[3];

  std::uint64_t tail;  // number of entries begun
  std::uint64_t gaps;  // times that changes may be missing; a reader compares it with its last
  std::uint64_t tail_reserved[6];
};
static_assert(sizeof(FeedHeader) == 128 && std::has_unique_object_representations_v<FeedHeader>);
static_assert(offsetof(FeedHeader, superseded) == offsetof(BufferHeader, superseded));
static_assert(offsetof(FeedHeader, magic) == 24 && offsetof(FeedHeader, tail) == 64);
static_assert(offsetof(FeedHeader, gaps) == 72);

struct FeedEntry {
  std::uint64_t sequence;  // feed_claimed(i) while it is written, then feed_published(i)
  std::uint64_t ref;       // the node's current buffer; 0: its LID was freed
  std::uint64_t version;   // at which that state of the node was created; 0: freed
  std::uint32_t lid;
  std::uint32_t check;  // feed_check() of the other fields
};
static_assert(sizeof(FeedEntry) == 32 && std::has_unique_object_representations_v<FeedEntry>);
static_assert(offsetof(FeedEntry, ref) == 8 && offsetof(FeedEntry, version) == 16);
static_assert(offsetof(FeedEntry, lid) == 24);

/// Header included, as long as a page table's directory, so that both share a buffer class.
inline constexpr std::uint32_t kFeedBytes = kDirectoryBytes;
inline constexpr std::uint32_t kFeedEntries = (kFeedBytes - sizeof(FeedHeader)) / sizeof(FeedEntry);
static_assert(kFeedEntries == 2044);

[[nodiscard]] constexpr std::uint64_t feed_claimed(std::uint64_t index) { return 2 * index + 1; }
[[nodiscard]] constexpr std::uint64_t feed_published(std::uint64_t index) { return 2 * index + 2; }

/// Checksum of an entry published under this sequence: detects a torn READ.
[[nodiscard]] constexpr std::uint32_t feed_check(const FeedEntry& entry) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;
  std::uint64_t mixed = (entry.sequence + kOdd) * kOdd;
  for (const std::uint64_t word : {entry.ref, entry.version, std::uint64_t{entry.lid}}) {
    mixed = ((mixed ^ (mixed >> 29)) + word) * kOdd;
  }
  return static_cast<std::uint32_t>(mixed >> 32);
}

/// Where a map's feed lies: field `feed` of the answer to feed_open (wire/one_sided.hpp).
struct FeedPlace {
  std::uint64_t offset;      // of its header in the region
  std::uint32_t generation;  // of that header
  std::uint32_t entries;     // kFeedEntries
};
static_assert(sizeof(FeedPlace) == 16 && std::has_unique_object_representations_v<FeedPlace>);

}  // namespace espalier::wire
