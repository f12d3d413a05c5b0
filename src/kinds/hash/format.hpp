// SPDX-License-Identifier: Apache-2.0
// The bytes of a hash map (docs/formats/hash.md). Formats only.
//
//   header ---- 192 ----+- partition 0 -+- partition 1 -+ ...        one buffer
//                              | directory word
//   directory   | header 32 | segment word 0 | 1 | 2 | ...           2^depth of them
//                                     |
//   segment     | header 64 | bin 0 | bin 1 | ... 207 | overflow bucket 208 | ... 254 |
//                                 | slot
//   record      | header 16 | key | value |       in a page of records of one length
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "wire/ref.hpp"

namespace espalier::hash {

inline constexpr std::uint64_t kHashMagic = 0x4853'4148'5249'4c45;  // "ELIRHASH"
inline constexpr std::uint32_t kHashFormat = 3;

inline constexpr std::uint32_t kLineBytes = 64;
inline constexpr std::uint32_t kSegmentBytes = 16384;
inline constexpr std::uint32_t kBinsPerSegment = 208;
inline constexpr std::uint32_t kOverflowPerSegment = 47;
static_assert((1 + kBinsPerSegment + kOverflowPerSegment) * kLineBytes == kSegmentBytes);
inline constexpr std::uint32_t kSlotsPerBucket = 7;
inline constexpr std::uint32_t kPartitionsMax = 512;
inline constexpr std::uint32_t kDepthMax = 12;  // of a directory
inline constexpr std::uint32_t kTagBits = 11;
inline constexpr std::uint32_t kSlotGenerationBits = 10;
inline constexpr std::uint32_t kRecordAlignment = 16;
inline constexpr std::uint32_t kRecordLengthMax = 1024;  // longer pairs lie in a buffer beside it
inline constexpr std::size_t kKeyBytesMax = 65535;
inline constexpr std::size_t kValueBytesMax = std::size_t{16} << 20;

/// A bin, or an overflow bucket: one line. `header` is a BucketWord, each slot a Slot.
struct Bucket {
  std::uint64_t header;
  std::uint64_t slots[kSlotsPerBucket];
};
static_assert(sizeof(Bucket) == kLineBytes && offsetof(Bucket, slots) == 8);
static_assert(std::has_unique_object_representations_v<Bucket>);

/// One of a bucket's slots. 0: empty.
///
///   63          62      61     51 50          41 40                0
///   +----------+-------+---------+--------------+------------------+
///   | overflow | link  | tag     | generation   | offset / 16      |
///   +----------+-------+---------+--------------+------------------+
///
/// `link`: what it names is a version link. `overflow`, in a bucket's last slot alone: it names no
/// record but the bucket in which the bin goes on, by its line in the segment.
struct Slot {
  std::uint64_t bits = 0;

  static constexpr unsigned kOffsetBits = 41;
  static constexpr unsigned kTagShift = kOffsetBits + kSlotGenerationBits;
  static constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << kOffsetBits) - 1;
  static constexpr std::uint64_t kGenerationMask = (std::uint64_t{1} << kSlotGenerationBits) - 1;
  static constexpr std::uint64_t kTagMask = (std::uint64_t{1} << kTagBits) - 1;
  static constexpr std::uint64_t kOverflow = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kLink = std::uint64_t{1} << 62;
  /// What is compared to find a tag among slots: overflow links have none, and no tag is 0.
  static constexpr std::uint64_t kSearchMask = kOverflow | kTagMask << kTagShift;

  static constexpr Slot of(std::uint64_t offset, std::uint32_t generation, std::uint64_t tag,
                           bool link = false) {
    return Slot{(link ? kLink : 0) | tag << kTagShift |
                (generation & kGenerationMask) << kOffsetBits | offset / kRecordAlignment};
  }
  static constexpr Slot overflow_at(std::uint32_t line) { return Slot{kOverflow | line}; }

  [[nodiscard]] constexpr bool empty() const { return bits == 0; }
  [[nodiscard]] constexpr bool is_overflow() const { return (bits & kOverflow) != 0; }
  [[nodiscard]] constexpr bool is_link() const { return (bits & kLink) != 0; }
  [[nodiscard]] constexpr std::uint32_t line() const { return bits & 0xFF; }
  [[nodiscard]] constexpr std::uint64_t tag() const { return bits >> kTagShift & kTagMask; }
  [[nodiscard]] constexpr std::uint32_t generation() const {
    return static_cast<std::uint32_t>(bits >> kOffsetBits & kGenerationMask);
  }
  [[nodiscard]] constexpr std::uint64_t offset() const {
    return (bits & kOffsetMask) * kRecordAlignment;
  }
  friend constexpr bool operator==(Slot, Slot) = default;
};
static_assert(sizeof(Slot) == 8);
static_assert(Slot::kTagShift + kTagBits == 62);

/// The header of a bucket. Of an overflow bucket only the generation counts, and `changes` is the
/// number of the bin that it belongs to.
///
///   63            38 37    33   32        31       0
///   +---------------+--------+-----------+---------+
///   | generation    | depth  | pending   | changes |
///   +---------------+--------+-----------+---------+
///
/// `depth`: of how many bits of the directory's part of the hash all keys of the bin agree.
/// `pending`: nothing of it is here yet; it is in the bin of the same number of the segment that is
/// being split. `changes` moves on with each slot that moves inside the bin, or out of it.
struct BucketWord {
  std::uint64_t bits = 0;

  static constexpr std::uint64_t kPending = std::uint64_t{1} << 32;
  static constexpr std::uint64_t kChangesMask = kPending - 1;
  static constexpr unsigned kDepthShift = 33;
  static constexpr unsigned kGenerationShift = 38;
  static constexpr std::uint32_t kGenerationMask = (std::uint32_t{1} << 26) - 1;

  static constexpr BucketWord of(std::uint32_t generation, std::uint32_t depth, bool pending,
                                 std::uint32_t changes) {
    return BucketWord{std::uint64_t{generation & kGenerationMask} << kGenerationShift |
                      std::uint64_t{depth} << kDepthShift | (pending ? kPending : 0) | changes};
  }
  [[nodiscard]] constexpr std::uint32_t generation() const {
    return static_cast<std::uint32_t>(bits >> kGenerationShift);
  }
  [[nodiscard]] constexpr std::uint32_t depth() const { return bits >> kDepthShift & 31; }
  [[nodiscard]] constexpr bool pending() const { return (bits & kPending) != 0; }
  [[nodiscard]] constexpr std::uint32_t changes() const {
    return static_cast<std::uint32_t>(bits & kChangesMask);
  }
  friend constexpr bool operator==(BucketWord, BucketWord) = default;
};

/// Where a directory or a segment lies, its depth, and the low bits of its generation. 0: none.
///
///   63            42 41     36 35                       0
///   +---------------+---------+--------------------------+
///   | generation    | depth   | offset / 512             |
///   +---------------+---------+--------------------------+
struct PlaceWord {
  std::uint64_t bits = 0;

  static constexpr std::uint32_t kGenerationMask = (std::uint32_t{1} << 22) - 1;
  static constexpr PlaceWord of(std::uint64_t offset, std::uint32_t generation,
                                std::uint32_t depth) {
    return PlaceWord{std::uint64_t{generation & kGenerationMask} << 42 |
                     std::uint64_t{depth} << 36 | offset / wire::kBlockBytes};
  }
  [[nodiscard]] constexpr bool none() const { return bits == 0; }
  [[nodiscard]] constexpr std::uint64_t offset() const {
    return (bits & wire::kBlockMask) * wire::kBlockBytes;
  }
  [[nodiscard]] constexpr std::uint32_t depth() const { return bits >> 36 & 63; }
  [[nodiscard]] constexpr std::uint32_t generation() const {
    return static_cast<std::uint32_t>(bits >> 42);
  }
  friend constexpr bool operator==(PlaceWord, PlaceWord) = default;
};

/// The map's header; lines of partitions follow.
struct HashHeader {
  std::uint32_t map_id;
  std::uint32_t generation;
  std::uint64_t created;
  std::uint64_t superseded;
  std::uint64_t magic;
  std::uint32_t format;
  std::uint32_t partitions;
  std::uint32_t versions;
  std::uint32_t reserved;
  std::uint64_t seed[2];
  std::uint64_t read_version;  // on a line of its own: every read begins with it
  std::uint64_t clock_offset;  // of the read version that counts: this one, or its group's
  std::uint64_t reserved_read[6];
  std::uint64_t write_version;
  std::uint64_t reserved_write[7];
};
static_assert(sizeof(HashHeader) == 192 && std::has_unique_object_representations_v<HashHeader>);
static_assert(offsetof(HashHeader, superseded) == offsetof(wire::BufferHeader, superseded));
static_assert(offsetof(HashHeader, magic) == 24 && offsetof(HashHeader, format) == 32);
static_assert(offsetof(HashHeader, partitions) == 36 && offsetof(HashHeader, versions) == 40);
static_assert(offsetof(HashHeader, seed) == 48);
static_assert(offsetof(HashHeader, read_version) == 64);
static_assert(offsetof(HashHeader, clock_offset) == 72);
static_assert(offsetof(HashHeader, write_version) == 128);

/// Where a hash map lies, for a client that is to read it by READs alone: a field of the answer to
/// one_sided_hash (wire/one_sided.hpp).
struct HashPlace {
  std::uint64_t header_offset;  // of the map's header in the region
  HashHeader header;            // as it was then
};
static_assert(sizeof(HashPlace) == 8 + sizeof(HashHeader));
static_assert(std::has_unique_object_representations_v<HashPlace>);

/// A partition as readers know it.
struct PartitionLine {
  std::uint64_t directory;  // a PlaceWord; 0: nothing was ever written here
  std::uint64_t purged;     // no state that was replaced at or below this version is surely here
  std::uint64_t reserved[6];
};
static_assert(sizeof(PartitionLine) == kLineBytes);
static_assert(offsetof(PartitionLine, purged) == 8);
static_assert(std::has_unique_object_representations_v<PartitionLine>);

/// Before the segment words of a directory.
struct DirectoryHeader {
  std::uint32_t map_id;
  std::uint32_t generation;
  std::uint64_t created;
  std::uint64_t superseded;
  std::uint32_t depth;
  std::uint32_t partition;
};
static_assert(sizeof(DirectoryHeader) == 32);
static_assert(std::has_unique_object_representations_v<DirectoryHeader>);

/// The first line of a segment.
struct SegmentHeader {
  std::uint32_t map_id;
  std::uint32_t generation;
  std::uint64_t created;
  std::uint64_t superseded;
  std::uint32_t partition;
  std::uint32_t
      prefix;  // of the hash's part for the directory, as it was when the segment was made
  std::uint64_t reserved[4];
};
static_assert(sizeof(SegmentHeader) == kLineBytes);
static_assert(std::has_unique_object_representations_v<SegmentHeader>);

/// The first line of a page of records.
struct RecordPageHeader {
  std::uint32_t map_id;
  std::uint32_t generation;
  std::uint64_t created;
  std::uint64_t superseded;
  std::uint32_t record_bytes;
  std::uint32_t number;  // its host's own; readers do not look at it
  std::uint64_t reserved[4];
};
static_assert(sizeof(RecordPageHeader) == kLineBytes);
static_assert(std::has_unique_object_representations_v<RecordPageHeader>);

/// Before key and value of a record. Where `key_bytes` is 0 it is another thing, which
/// `value_bytes` tells: kLongRecord or kVersionLink.
struct RecordHeader {
  std::uint64_t version;     // that made it; 0: versions are off
  std::uint32_t generation;  // moves on when it is freed
  std::uint16_t key_bytes;
  std::uint16_t value_bytes;
};
static_assert(sizeof(RecordHeader) == 16 && std::has_unique_object_representations_v<RecordHeader>);
static_assert(offsetof(RecordHeader, generation) == 8);
inline constexpr std::uint16_t kLongRecord = 1;
inline constexpr std::uint16_t kVersionLink = 2;

/// A record whose key and value lie in a buffer of the values' classes, behind a LongPairHeader.
struct LongRecord {
  RecordHeader header;
  std::uint64_t pair;  // a wire::Ref
  std::uint32_t value_bytes;
  std::uint16_t key_bytes;
  std::uint16_t reserved;
};
static_assert(sizeof(LongRecord) == 32 && std::has_unique_object_representations_v<LongRecord>);
static_assert(offsetof(LongRecord, pair) == 16);

/// The common header of values, before key and value of a long record: `bytes` of both together,
/// and the key's hash, for who moves the record and must not read 64 KiB for that.
struct LongPairHeader {
  std::uint32_t map_id;
  std::uint32_t generation;
  std::uint64_t created;
  std::uint64_t superseded;
  std::uint64_t bytes;
  std::uint64_t hash;
};
static_assert(sizeof(LongPairHeader) == 40 && offsetof(LongPairHeader, hash) == 32);
static_assert(std::has_unique_object_representations_v<LongPairHeader>);

/// What a key was before and after a version, while somebody may need either.
struct VersionLink {
  RecordHeader header;  // its version is that of the change
  std::uint64_t newer;  // a Slot of a record; 0: erased
  std::uint64_t older;  // a Slot of a record or a link; 0: nothing that anybody needs
};
static_assert(sizeof(VersionLink) == 32 && std::has_unique_object_representations_v<VersionLink>);
static_assert(offsetof(VersionLink, newer) == 16 && offsetof(VersionLink, older) == 24);

/// What a hash map is made of, for those who list it. The name of its group follows.
struct HashShape {
  std::uint32_t partitions;
  std::uint8_t versions;     // 1 or 0
  std::uint8_t group_bytes;  // of the group's name; 0: none is named
  std::uint16_t reserved;
  std::uint64_t snapshot_bytes_max;
};
static_assert(sizeof(HashShape) == 16 && std::has_unique_object_representations_v<HashShape>);

/// Its numbers, each right but not all of one instant.
struct HashNumbers {
  std::uint64_t items;
  std::uint64_t memory_bytes;   // of all its buffers
  std::uint64_t segments;       // of 16 KiB, with bins
  std::uint64_t record_bytes;   // of records and version links in use
  std::uint64_t long_bytes;     // of pairs that lie beside the records
  std::uint64_t retired_bytes;  // unlinked, or will be, and waits for readers or snapshots
  std::uint64_t splits;         // of segments
  std::uint64_t snapshots;
  std::uint64_t read_version;
  std::uint64_t write_version;
};
static_assert(sizeof(HashNumbers) == 80 && std::has_unique_object_representations_v<HashNumbers>);

/// One item of a walk; its key and value follow. A value of more than kWalkedValueMax is left out,
/// and is to be asked for by its key.
struct ItemOfWalk {
  std::uint64_t version;
  std::uint32_t value_bytes;  // 0 where it is left out
  std::uint16_t key_bytes;
  std::uint16_t left_out;  // 1 or 0
};
static_assert(sizeof(ItemOfWalk) == 16 && std::has_unique_object_representations_v<ItemOfWalk>);
inline constexpr std::uint32_t kWalkedValueMax = 64 << 10;
/// A piece of a walk ends with the item by which it comes to as much,
inline constexpr std::uint32_t kWalkBytes = 64 << 10;
/// and so is no longer than this.
inline constexpr std::uint32_t kWalkBytesMax =
    kWalkBytes + sizeof(ItemOfWalk) + 0xFFFF + kWalkedValueMax;

}  // namespace espalier::hash
