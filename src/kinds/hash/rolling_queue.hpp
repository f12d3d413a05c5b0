// SPDX-License-Identifier: Apache-2.0
// Keys on their way to their turn: a rolling queue, in which each has its bin asked for, then its
// record, then both brought near, while those before it have their turns.
//
//     keys  ... | 40 | ... | 20 | ... | 4 | ... | 0 |
//                 |          |          |         |
//             bin to L2  bin searched  both     its turn, in the order of arrival
//                        record to L2  to L1
//
// What comes moves on what is there (push, follow), or who carries out looks as far ahead as the
// distances say (look_ahead). So nothing drains between one call and the next.
//
// What is found ahead are hints: at its turn a key is looked for with what is near by then, and
// from the directory on if its bin has moved. So nothing that changes meanwhile makes an answer
// wrong.
//
// Thread: one at a time; it exposes an epoch while it looks ahead.
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

/// `What`: what stands in the queue, of at most two words.
template <class What>
class RollingQueue {
 public:
  /// What is known of a key on its way: one line.
  struct Place {
    HashMap* map;
    std::uint64_t bits;  // of its hash
    KeyHint hint;
    What what;

    [[nodiscard]] KeyHash hash() const { return {bits, map->partition_bits}; }
  };
  static_assert(sizeof(Place) == kLineBytes);

  /// With room for so many. Errors: std::bad_alloc.
  RollingQueue(const PipelineDistances& distances, std::size_t places) : distances_(distances) {
    make_room(places);
  }

  /// Room for so many, if there is not; what is there stays. Errors: std::bad_alloc.
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

  /// Takes one in. An empty key is none: what is found for it means nothing.
  /// Requires: there is room. The map stays until its turn. Cost: the key's hash.
  void push(HashMap& map, std::string_view key, const What& what) {
    ESPALIER_DEBUG_ASSERT(size() <= mask_);
    Place& place = at(begun_++);
    place.map = &map;
    place.bits = key.empty() ? 0 : hash_key(key, map.seed);
    place.hint = {};
    place.what = what;
  }
  /// Moves on those that are there by one, as far behind one another as the distances say.
  void follow() {
    const auto bin = static_cast<std::int64_t>(distances_.bin);
    look(begun_, begun_ - bin + distances_.record, begun_ - bin + distances_.near);
  }
  /// Looks as far ahead of the one whose turn is next as the distances say, where so many are not
  /// to have their turns now: for records not among the last of these, whose bins are on their way
  /// still.
  void look_ahead(std::size_t left) {
    const auto from_next = [this](std::uint32_t ahead) {
      return next_ + static_cast<std::int64_t>(ahead) + 1;
    };
    const std::size_t young = std::min<std::size_t>(left, distances_.bin - distances_.record);
    const std::int64_t old = begun_ - static_cast<std::int64_t>(young);
    look(std::min(begun_, from_next(distances_.bin)), std::min(old, from_next(distances_.record)),
         std::min(old, from_next(distances_.near)));
  }

  /// The one whose turn is next. Requires: there is one.
  [[nodiscard]] Place& next() { return at(next_); }
  /// It is in the queue no more; its place is what it was until as many others have come as there
  /// is room for.
  Place& take() { return at(next_++); }
  /// Nothing is in it any more.
  void clear() { next_ = with_bin_ = with_record_ = near_ = begun_; }
  /// Takes one that is not carried out: nothing of it is looked for any more.
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
  // First where all of them are, then they are asked for. A request for a line retires once its
  // page is known, which takes long where no TLB has it: as many wait for that at a time as the
  // processor has instructions in flight, so few should lie between them.
  template <int kHint>
  void look_for(std::int64_t bins, std::int64_t records) {
    const std::int64_t first_bin = with_bin_;
    for (; with_bin_ < bins; ++with_bin_) find_bin(at(with_bin_));
    for (std::int64_t i = first_bin; i < bins; ++i) __builtin_prefetch(at(i).hint.bin, 0, kHint);
    const std::int64_t first_record = with_record_;
    for (; with_record_ < records; ++with_record_) find_record(at(with_record_));
    for (std::int64_t i = first_record; i < records; ++i) {
      // As a number: where nothing is wanted it is null, and asking for that does no harm.
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
  // Of a bin that goes on elsewhere, of a full map one key in ten is there.
  static void find_record(Place& place) {
    KeyHint& hint = place.hint;
    if (hint.bin == nullptr || find_in(hint.bin, place)) return;
    const Slot last = load_slot(hint.bin + kLastSlot);
    if (last.is_overflow()) hint.slot_at = place.map->bucket(hint.segment, last.line());
  }
  /// A record, or where there is none yet the bucket in which the bin goes on. Where there is
  /// neither, what is asked for does no harm.
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
    // A writer may have taken it out since. Where a hint has no slot, its place is a bucket's.
    const Slot slot = load_slot(at);
    if (slot.empty() || slot.is_overflow() || slot.tag() != tag) return false;
    place.hint.slot_at = at;
    place.hint.slot = slot;
    return true;
  }
  // Where there is no bin or record, what it asks for does no harm.
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
  std::unique_ptr<Place[]> places_;  // a power of two of them, by the number of who stands there
  std::uint64_t mask_ = 0;           // of a number, which place it has
  // Numbers of those that came: what has been done for all below.
  std::int64_t begun_ = 0;
  std::int64_t with_bin_ = 0;
  std::int64_t with_record_ = 0;
  std::int64_t near_ = 0;
  std::int64_t next_ = 0;
};

}  // namespace espalier::hash
