// SPDX-License-Identifier: Apache-2.0
// One segment for its writers: bins and overflow buckets, found, filled and emptied.
//
//   bin 17      | header | a | b | c | d | e | f | -> 211 |
//   bucket 211  | header | g | h |   |   |   |   |        |
//
// Invariants
// 1. A chain is dense: all its buckets but the last have six slots and the link, and the last has
//    its slots from the first on. So the length of a chain follows from its number of slots.
// 2. Overflow buckets of no bin are on the free list, and those of a bin carry its number.
// 3. Readers walk a chain while it is changed. A slot that moves is stored at its new place first;
//    then the bin's count of changes is incremented; then the old place is emptied. A reader that
//    missed both sees another count. One that meets both may see the same count.
//
// Thread: the holder of the partition's lock; readers see the bytes alone (reading.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/atomic_bytes.hpp"
#include "kinds/hash/format.hpp"
#include "kinds/hash/key_hash.hpp"
#include "kinds/hash/record_view.hpp"
#include "kinds/hash/slot_search.hpp"

namespace espalier::hash {

/// Limit on buckets of a chain: bounds a get if an attacker puts all keys into one bin.
inline constexpr std::uint32_t kChainMax = 8;

/// The place of a slot.
struct SlotPlace {
  std::byte* at = nullptr;
  std::uint32_t bin = 0;

  [[nodiscard]] Slot load() const { return Slot{base::load_shared<std::uint64_t>(at)}; }
  void store(Slot slot) const {
    base::store_shared<std::uint64_t>(at, slot.bits, std::memory_order_release);
  }
};

/// The lines of a segment, known by their offset alone, so that a write of an existing key touches
/// nothing else of its segment.
class SegmentBytes {
 public:
  SegmentBytes(std::byte* image, std::uint64_t offset) : image_(image), offset_(offset) {}

  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  [[nodiscard]] std::byte* line(std::uint32_t number) const {
    return image_ + offset_ + (std::uint64_t{1} + number) * kLineBytes;
  }
  [[nodiscard]] BucketWord header(std::uint32_t bin) const {
    return BucketWord{base::load_shared<std::uint64_t>(line(bin))};
  }

  /// The key's slot.
  [[nodiscard]] std::optional<SlotPlace> find(const KeyHash& hash, std::string_view key) const {
    constexpr std::size_t kLastSlot = kSlotsPerBucket - 1;
    const auto slot_at = [](std::byte* bucket, std::size_t index) {
      return bucket + offsetof(Bucket, slots) + index * sizeof(Slot);
    };
    const std::uint32_t bin = hash.bin();
    for (std::byte* bucket = line(bin);;) {
      for (std::uint32_t found = matching_slots(bucket, hash.tag()); found != 0;
           found &= found - 1) {
        const SlotPlace place{slot_at(bucket, first_match(found)), bin};
        const RecordView record(image_, any_record(image_, place.load()));
        if (same_key(record.pair().key, key)) return place;
      }
      const Slot last = SlotPlace{slot_at(bucket, kLastSlot), bin}.load();
      if (!last.is_overflow()) return std::nullopt;
      bucket = line(last.line());
    }
  }
  /// The slot whose chain of links has one of this version, among those of the hash's tag for which
  /// `is_its_key(slot)` returns true.
  template <class IsItsKey>
  [[nodiscard]] std::optional<SlotPlace> find_link(const KeyHash& hash, std::uint64_t version,
                                                   const IsItsKey& is_its_key) const {
    SlotPlace places[kChainMax * kSlotsPerBucket];
    const std::uint32_t count = gather(hash.bin(), places);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (has_link(places[i].load(), hash, version) && is_its_key(places[i].load())) {
        return places[i];
      }
    }
    return std::nullopt;
  }
  /// All slots of a bin. Returns how many. Requires: room for kChainMax * kSlotsPerBucket.
  std::uint32_t gather(std::uint32_t bin, SlotPlace* places) const;

 private:
  [[nodiscard]] bool has_link(Slot slot, const KeyHash& hash, std::uint64_t version) const;

 protected:
  std::byte* image_;
  std::uint64_t offset_;
};

/// A segment's lines with the state of its writer.
class Segment : public SegmentBytes {
 public:
  /// Initialises a buffer: all bins are empty, and pending or not. Requires: no thread reads it.
  Segment(std::byte* image, std::uint64_t offset, std::uint32_t map_id, std::uint32_t partition,
          std::uint32_t prefix, std::uint32_t depth, bool pending);

  [[nodiscard]] PlaceWord word() const { return PlaceWord::of(offset_, generation_, depth_); }
  [[nodiscard]] std::uint32_t depth() const { return depth_; }
  [[nodiscard]] std::uint32_t prefix() const { return prefix_; }
  /// Number of its keys.
  [[nodiscard]] std::uint32_t slots() const { return slots_; }
  [[nodiscard]] std::uint32_t used_buckets() const { return kOverflowPerSegment - free_count_; }

  /// Whether insert() will find room, and leave so many overflow buckets free.
  [[nodiscard]] bool has_room(std::uint32_t bin, std::uint32_t reserve) const;
  /// Requires: has_room(), and the key has no slot.
  SlotPlace insert(std::uint32_t bin, Slot slot);
  /// Empties a slot; the chain's last one takes its place.
  void remove(const SlotPlace& place);

  /// Begins a split: this segment will have the keys whose next bit is 0.
  void deepen() {
    ++depth_;
    prefix_ <<= 1;
  }
  /// Publishes a bin: all slots that were for this segment are here, and readers may look.
  void arrived(std::uint32_t bin);
  /// The bin's slots for the other segment are there: readers must look there from now on.
  void departed(std::uint32_t bin);

 private:
  /// The last bucket of a chain and the slots in it.
  struct End {
    std::byte* before = nullptr;  // the bucket that links to it; null: it is the bin itself
    std::byte* last = nullptr;
    std::uint32_t filled = 0;
    std::uint32_t buckets = 0;
  };
  [[nodiscard]] End end_of(std::uint32_t bin) const;
  void count_change(std::uint32_t bin);

  std::uint32_t generation_;
  std::uint32_t depth_;
  std::uint32_t prefix_;
  std::uint32_t slots_ = 0;
  std::uint32_t free_count_ = kOverflowPerSegment;
  std::array<std::uint8_t, kOverflowPerSegment> free_;  // lines of overflow buckets
};

}  // namespace espalier::hash
