// SPDX-License-Identifier: Apache-2.0
// A software prefetch pipeline: a rolling queue of keys, for each of which the bin is prefetched,
// then its record, then both into L1, while keys before it have their turns.
//
//     keys  ... | 40 | ... | 20 | ... | 4 | ... | 0 |
//                 |          |          |         |
//             bin to L2  bin searched  both     its turn, in the order of arrival
//                        record to L2  to L1
//
// New keys advance those that are queued (push, follow), or the user of the queue has it look as
// far ahead as the distances say (look_ahead). So the queue does not drain between two calls.
//
// Results of the look-ahead are hints: in its turn a key is looked up again through the prefetched
// lines, and from the directory on if its bin has moved. So no concurrent change makes an answer
// wrong.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "kinds/hash/hash_map.hpp"
#include "kinds/hash/pipeline_distances.hpp"

namespace espalier::hash {

/// `What`: the payload of a key, of at most two words.
template <class What>
class RollingQueue {
 public:
  /// The state of a queued key: one line.
  struct Place {
    HashMap* map;
    std::uint64_t bits;  // of its hash
    KeyHint hint;
    What what;

    [[nodiscard]] KeyHash hash() const { return {bits, map->partition_bits}; }
  };
  static_assert(sizeof(Place) == kLineBytes);

  /// With room for so many keys. Errors: std::bad_alloc.
  RollingQueue(const PipelineDistances& distances, std::size_t places) : distances_(distances) {
    make_room(places);
  }

  /// Makes room for so many; queued keys stay. Errors: std::bad_alloc.
  void make_room(std::size_t places) {
    if (places_ != nullptr && places <= mask_ + 1) return;
    const std::uint64_t mask = std::bit_ceil(places) - 1;
    auto more = std::make_unique<Place[]>(mask + 1);
    for (std::int64_t i = next_; i != begun_; ++i)
      more[static_cast<std::uint64_t>(i) & mask] = at(i);
    places_ = std::move(more);
    mask_ = mask;
  }

  [[nodiscard]] const PipelineDistances& distances() const { return distances_; }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(begun_ - next_); }
  [[nodiscard]] bool empty() const { return begun_ == next_; }

  /// Enqueues a key. For an empty key the hint is void.
  /// Requires: there is room. The map lives until the key's turn. Cost: the key's hash.
  void push(HashMap& map, std::string_view key, const What& what) {
    ESPALIER_DEBUG_ASSERT(size() <= mask_);
    Place& place = at(begun_++);
    place.map = &map;
    place.bits = key.empty() ? 0 : hash_key(key, map.seed);
    place.hint = {};
    place.what = what;
  }
  /// Advances the stages of queued keys to their distances behind the newest one.
  void follow() {
    const auto bin = static_cast<std::int64_t>(distances_.bin);
    look(begun_, begun_ - bin + distances_.record, begun_ - bin + distances_.near);
  }
  /// Advances the stages to their distances ahead of the next turn. `left`: so many of the newest
  /// keys do not have their turns now; their records are not looked up while their bins are still
  /// in flight.
  void look_ahead(std::size_t left) {
    const auto from_next = [this](std::uint32_t ahead) {
      return next_ + static_cast<std::int64_t>(ahead) + 1;
    };
    const std::size_t young = std::min<std::size_t>(left, distances_.bin - distances_.record);
    const std::int64_t old = begun_ - static_cast<std::int64_t>(young);
    look(std::min(begun_, from_next(distances_.bin)), std::min(old, from_next(distances_.record)),
         std::min(old, from_next(distances_.near)));
  }

  /// The key whose turn is next. Requires: there is one.
  [[nodiscard]] Place& next() { return at(next_); }
  /// Removes the next key; its place stays valid until as many keys were pushed as there is room
  /// for.
  Place& take() { return at(next_++); }
  /// Removes all keys.
  void clear() { next_ = with_bin_ = with_record_ = near_ = begun_; }
  /// Removes the next key without its turn: its further stages are skipped.
  Place& refuse() {
    Place& place = take();
    with_bin_ = std::max(with_bin_, next_);
    with_record_ = std::max(with_record_, next_);
    near_ = std::max(near_, next_);
    return place;
  }

 private:
  static constexpr std::size_t kLastSlot =
      offsetof(Bucket, slots) + (kSlotsPerBucket - 1) * sizeof(Slot);
  // As of __builtin_prefetch.
  static constexpr int kToL2 = 2;
  static constexpr int kToL1 = 3;

  [[nodiscard]] Place& at(std::int64_t number) {
    return places_[static_cast<std::uint64_t>(number) & mask_];
  }

  void look(std::int64_t bins, std::int64_t records, std::int64_t near) {
    if (distances_.near == 0) return look_for<kToL1>(bins, records);
    look_for<kToL2>(bins, records);
    for (; near_ < near; ++near_) bring_near(at(near_));
  }
  // Computes all addresses first, and then prefetches. A prefetch retires once its page is known,
  // which takes long on a TLB miss: as many of these waits overlap as the processor has
  // instructions in flight, so few should lie between them.
  template <int kHint>
  void look_for(std::int64_t bins, std::int64_t records) {
    const std::int64_t first_bin = with_bin_;
    for (; with_bin_ < bins; ++with_bin_) find_bin(at(with_bin_));
    for (std::int64_t i = first_bin; i < bins; ++i) __builtin_prefetch(at(i).hint.bin, 0, kHint);
    const std::int64_t first_record = with_record_;
    for (; with_record_ < records; ++with_record_) find_record(at(with_record_));
    for (std::int64_t i = first_record; i < records; ++i) {
      // As a number: null if nothing is wanted, and prefetching that does no harm.
      const auto wanted = reinterpret_cast<std::uintptr_t>(wanted_of(at(i)));
      __builtin_prefetch(reinterpret_cast<const void*>(wanted), 0, kHint);
      __builtin_prefetch(reinterpret_cast<const void*>(wanted + kLineBytes), 0, kHint);
    }
  }

  static void find_bin(Place& place) {
    const HashMap& map = *place.map;
    const KeyHash hash = place.hash();
    const PlaceWord directory = map.directory(hash.partition());
    if (directory.none()) return;
    place.hint.segment = map.segment(directory, hash.prefix(directory.depth()));
    place.hint.bin = map.bucket(place.hint.segment, hash.bin());
  }
  // In a full map one key in ten is in a bin's next bucket.
  static void find_record(Place& place) {
    KeyHint& hint = place.hint;
    if (hint.bin == nullptr || find_in(hint.bin, place)) return;
    const Slot last = load_slot(hint.bin + kLastSlot);
    if (last.is_overflow()) hint.slot_at = place.map->bucket(hint.segment, last.line());
  }
  /// The record, or if there is none yet the bin's next bucket. If there is neither, prefetching
  /// the result does no harm.
  [[nodiscard]] static const std::byte* wanted_of(const Place& place) {
    const KeyHint& hint = place.hint;
    return hint.slot.empty() ? hint.slot_at : place.map->image + hint.slot.offset();
  }
  [[nodiscard]] static bool find_in(const std::byte* bucket, Place& place) {
    const std::uint64_t tag = place.hash().tag();
    const std::uint32_t found = matching_slots(bucket, tag);
    if (found == 0) return false;
    const std::byte* const at =
        bucket + offsetof(Bucket, slots) + first_match(found) * sizeof(Slot);
    // A writer may have removed it since. A hint without a slot has a bucket in slot_at.
    const Slot slot = load_slot(at);
    if (slot.empty() || slot.is_overflow() || slot.tag() != tag) return false;
    place.hint.slot_at = at;
    place.hint.slot = slot;
    return true;
  }
  // Without a bin or record its prefetches do no harm.
  static void bring_near(Place& place) {
    const bool in_next = place.hint.slot.empty() && place.hint.slot_at != nullptr;
    if (in_next) [[unlikely]]
      static_cast<void>(find_in(place.hint.slot_at, place));
    __builtin_prefetch(place.hint.bin);
    const std::byte* const record = place.map->image + place.hint.slot.offset();
    __builtin_prefetch(record);
    __builtin_prefetch(record + kLineBytes);
  }

  const PipelineDistances distances_;
  std::unique_ptr<Place[]> places_;  // a power of two of them, by the key's number
  std::uint64_t mask_ = 0;           // maps a key's number to its place
  // Numbers of keys: how far each stage has come.
  std::int64_t begun_ = 0;
  std::int64_t with_bin_ = 0;
  std::int64_t with_record_ = 0;
  std::int64_t near_ = 0;
  std::int64_t next_ = 0;
};

}  // namespace espalier::hash
