// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/segment.hpp"

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"

namespace espalier::hash {
namespace {

std::byte* slot_at(std::byte* bucket, std::uint32_t index) {
  return bucket + offsetof(Bucket, slots) + index * sizeof(Slot);
}

Slot read_slot(const std::byte* at) { return Slot{base::load_shared<std::uint64_t>(at)}; }

void store_slot(std::byte* at, Slot slot) {
  base::store_shared<std::uint64_t>(at, slot.bits, std::memory_order_release);
}

void store_header(std::byte* bucket, BucketWord word) {
  base::store_shared<std::uint64_t>(bucket, word.bits, std::memory_order_release);
}

}  // namespace

Segment::Segment(std::byte* image, std::uint64_t offset, std::uint32_t map_id,
                 std::uint32_t partition, std::uint32_t prefix, std::uint32_t depth, bool pending)
    : SegmentBytes(image, offset), depth_(depth), prefix_(prefix) {
  std::byte* const head = image_ + offset_;
  generation_ = base::load_shared<std::uint32_t>(head + offsetof(SegmentHeader, generation));
  base::store_shared<std::uint32_t>(head + offsetof(SegmentHeader, map_id), map_id);
  base::store_shared<std::uint64_t>(head + offsetof(SegmentHeader, created), wire::kNoNode);
  base::store_shared<std::uint32_t>(head + offsetof(SegmentHeader, partition), partition);
  base::store_shared<std::uint32_t>(head + offsetof(SegmentHeader, prefix), prefix);
  for (std::uint32_t i = 0; i < kBinsPerSegment + kOverflowPerSegment; ++i) {
    const bool bin = i < kBinsPerSegment;
    for (std::uint32_t j = 0; j < kSlotsPerBucket; ++j) store_slot(slot_at(line(i), j), {});
    store_header(line(i), BucketWord::of(generation_, bin ? depth : 0, bin && pending, 0));
  }
  for (std::uint32_t i = 0; i < kOverflowPerSegment; ++i) {
    free_[i] = static_cast<std::uint8_t>(kBinsPerSegment + kOverflowPerSegment - 1 - i);
  }
  base::store_shared<std::uint64_t>(head + offsetof(SegmentHeader, superseded), wire::kLive,
                                    std::memory_order_release);
}

bool SegmentBytes::has_link(Slot slot, const KeyHash& hash, std::uint64_t version) const {
  if (slot.tag() != hash.tag()) return false;
  for (; slot.is_link(); slot = RecordView(image_, slot).older()) {
    if (RecordView(image_, slot).version() == version) return true;
  }
  return false;
}

Segment::End Segment::end_of(std::uint32_t bin) const {
  End end{nullptr, line(bin), 0, 1};
  for (;; ++end.buckets) {
    const Slot last = read_slot(slot_at(end.last, kSlotsPerBucket - 1));
    if (!last.is_overflow()) break;
    end.before = end.last;
    end.last = line(last.line());
  }
  while (end.filled < kSlotsPerBucket && !read_slot(slot_at(end.last, end.filled)).empty()) {
    ++end.filled;
  }
  return end;
}

bool Segment::has_room(std::uint32_t bin, std::uint32_t reserve) const {
  const End end = end_of(bin);
  return end.filled < kSlotsPerBucket || (free_count_ > reserve && end.buckets < kChainMax);
}

SlotPlace Segment::insert(std::uint32_t bin, Slot slot) {
  const End end = end_of(bin);
  ++slots_;
  if (end.filled < kSlotsPerBucket) {
    std::byte* const at = slot_at(end.last, end.filled);
    store_slot(at, slot);
    return {at, bin};
  }
  ESPALIER_ASSERT(free_count_ != 0 && end.buckets < kChainMax);
  const std::uint32_t number = free_[--free_count_];
  std::byte* const bucket = line(number);
  store_header(bucket, BucketWord::of(generation_, 0, false, bin));
  // A reader sees the last slot, or the link and behind it that slot.
  std::byte* const last = slot_at(end.last, kSlotsPerBucket - 1);
  store_slot(slot_at(bucket, 0), read_slot(last));
  store_slot(slot_at(bucket, 1), slot);
  store_slot(last, Slot::overflow_at(number));
  return {slot_at(bucket, 1), bin};
}

void Segment::remove(const SlotPlace& place) {
  const End end = end_of(place.bin);
  ESPALIER_ASSERT(end.filled != 0 && slots_ != 0);
  --slots_;
  std::byte* const last = slot_at(end.last, end.filled - 1);
  if (last != place.at) {
    // A walk may meet the slot at both places, whatever the header before and afterwards.
    place.store(read_slot(last));
    reached(Moment::slot_doubled);
    count_change(place.bin);
    reached(Moment::slot_doubled);
  }
  store_slot(last, {});
  if (end.filled != 1 || end.before == nullptr) return;
  // The bucket is empty: its line is free, and the one before it has its last slot again.
  count_change(place.bin);
  store_slot(slot_at(end.before, kSlotsPerBucket - 1), {});
  free_[free_count_++] =
      static_cast<std::uint8_t>((end.last - line(0)) / static_cast<std::ptrdiff_t>(kLineBytes));
}

std::uint32_t SegmentBytes::gather(std::uint32_t bin, SlotPlace* places) const {
  std::uint32_t count = 0;
  for (std::byte* bucket = line(bin);;) {
    Slot slot;
    for (std::uint32_t i = 0; i < kSlotsPerBucket; ++i) {
      slot = read_slot(slot_at(bucket, i));
      if (slot.empty() || slot.is_overflow()) break;
      places[count++] = {slot_at(bucket, i), bin};
    }
    if (!slot.is_overflow()) return count;
    bucket = line(slot.line());
  }
}

void Segment::count_change(std::uint32_t bin) {
  if (planted(Bug::changes_not_counted)) return;
  const BucketWord now = header(bin);
  store_header(line(bin),
               BucketWord::of(now.generation(), now.depth(), now.pending(), now.changes() + 1));
}

void Segment::arrived(std::uint32_t bin) {
  const BucketWord now = header(bin);
  ESPALIER_ASSERT(now.pending());
  store_header(line(bin), BucketWord::of(now.generation(), now.depth(), false, now.changes() + 1));
}

void Segment::departed(std::uint32_t bin) {
  const BucketWord now = header(bin);
  ESPALIER_ASSERT(now.depth() + 1 == depth_);
  store_header(line(bin), BucketWord::of(now.generation(), depth_, false, now.changes() + 1));
}

}  // namespace espalier::hash
