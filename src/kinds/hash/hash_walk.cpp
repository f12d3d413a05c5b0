// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/hash_walk.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/assert.hpp"

namespace espalier::hash {
namespace {

constexpr std::uint64_t kLastInOrder = std::numeric_limits<std::uint64_t>::max();

}  // namespace

HashWalk::HashWalk(const HashMap& map, std::string_view after) : map_(map), after_(after) {
  if (after.empty()) return;
  const KeyHash hash = map.hash(after);
  place_ = {hash.partition(), hash.bin(), hash.order()};
}

// It restarts because of a write of the bin meanwhile. After many restarts it makes writers wait,
// because its exposed epoch keeps memory from being freed.
void HashWalk::gather(HashThread& thread, Bin& bin) const {
  for (std::uint32_t looks = 0; looks < kLooksMax || planted(Bug::looks_without_end); ++looks) {
    if (try_gather(bin)) return;
  }
  const PartitionGuard guard(map_.partitions()[place_.partition].lock, thread.holder());
  const bool gathered = try_gather(bin);
  ESPALIER_ASSERT(gathered);
}

// Reads the slots of the current bin of the place. False: it has moved or changed.
bool HashWalk::try_gather(Bin& bin) const {
  bin.count = 0;
  const PlaceWord directory = map_.directory(place_.partition);
  if (directory.none()) {
    bin.last = kLastInOrder;
    return true;
  }
  const KeyHash here = KeyHash::of_order(place_.order, map_.partition_bits);
  const BinPlace from = locate_bin(map_, place_.partition, here, place_.bin);
  if (from.look != Look::found) return false;
  Slot slots[kChainMax * kSlotsPerBucket];
  std::uint32_t count = 0;
  if (!take_slots(from, slots, count)) return false;
  // The number of bits in which all keys of the bin agree with the place.
  bin.last = place_.order | kLastInOrder >> from.header.depth();
  for (std::uint32_t i = 0; i < count; ++i) {
    const Slot named = any_record(map_.image, slots[i]);
    if (named.empty()) return false;
    const RecordView record(map_.image, named);
    if (!record.confirmed()) return false;
    Candidate item;
    item.key = record.pair().key;
    const KeyHash hash =
        record.is_long() ? KeyHash(record.long_hash(), map_.partition_bits) : map_.hash(item.key);
    item.order = hash.order();
    // A bin whose split was just completed may still have slots of the other one.
    if (is_behind(item) && item.order <= bin.last) bin.items[bin.count++] = item;
  }
  std::sort(bin.items, bin.items + bin.count, [](const Candidate& a, const Candidate& b) {
    return std::tie(a.order, a.key) < std::tie(b.order, b.key);
  });
  // A slot that moves is at both its places for a while, which the header need not show.
  if (!planted(Bug::doubles_delivered)) {
    const Candidate* const end =
        std::unique(bin.items, bin.items + bin.count, [](const Candidate& a, const Candidate& b) {
          return a.order == b.order && a.key == b.key;
        });
    bin.count = static_cast<std::uint32_t>(end - bin.items);
  }
  return true;
}

// A key that is present throughout has a slot in the bin throughout, which is missed only if it
// moved meanwhile: then the bin's header has changed.
bool HashWalk::take_slots(const BinPlace& from, Slot* slots, std::uint32_t& count) const {
  reached(Moment::bin_read);
  const std::byte* bucket = from.bin;
  for (std::uint32_t steps = 0;; ++steps) {
    if (steps == kChainMax) return false;
    Slot slot;
    for (std::uint32_t i = 0; i < kSlotsPerBucket; ++i) {
      slot = Slot{base::load_shared<std::uint64_t>(
          bucket + offsetof(Bucket, slots) + i * sizeof(Slot), std::memory_order_acquire)};
      if (slot.empty() || slot.is_overflow()) break;
      __builtin_prefetch(map_.image + slot.offset());
      __builtin_prefetch(map_.image + slot.offset() + kLineBytes);
      slots[count++] = slot;
    }
    if (!slot.is_overflow()) break;
    reached(Moment::bucket_read);
    bucket = map_.bucket(from.segment, slot.line());
  }
  return load_bucket_word(from.bin) == from.header || planted(Bug::changes_ignored);
}

bool HashWalk::is_behind(const Candidate& item) const {
  if (item.order != place_.order) return item.order > place_.order;
  return after_.empty() || item.key > after_;
}

void HashWalk::leave(const Bin& bin) {
  after_.clear();
  if (bin.last != kLastInOrder) {
    place_.order = bin.last + 1;
    return;
  }
  const bool none = map_.directory(place_.partition).none();
  if (none || ++place_.bin == kBinsPerSegment) {
    ++place_.partition;
    place_.bin = 0;
  }
  place_.order = 0;
}

}  // namespace espalier::hash
