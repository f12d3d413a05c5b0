// SPDX-License-Identifier: Apache-2.0
// One write of one key: the resources that it needs, and its execution.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"
#include "base/own_counter.hpp"
#include "base/prefetch.hpp"
#include "base/try_reserve.hpp"
#include "kinds/hash/partition.hpp"
#include "memory/version_clock.hpp"

namespace espalier::hash {
namespace {

bool takes_effect(WriteOp op, bool existed) {
  return op == WriteOp::put || (op == WriteOp::insert ? !existed : existed);
}

}  // namespace

std::uint64_t WriteIntent::hand_over_record(std::uint64_t version) const {
  if (record == nullptr) return 0;
  std::memcpy(record->bytes().data() + offsetof(HashWrittenRecord, version), &version,
              sizeof version);
  const std::uint64_t sequence = record->hand_over();
  return answers_early ? 0 : sequence;
}

RecordClass class_of(const WriteIntent& intent) {
  return intent.pair
             ? kLinkClass
             : record_class_of(sizeof(RecordHeader) + intent.key.size() + intent.value.size());
}

Shortage Partition::write(const WriteIntent& intent, WriteOutcome& outcome) noexcept {
  Shortage shortage;
  take_out_ready();
  move_bins(kBinsPerWrite);
  std::optional<SlotPlace> place;
  NewestState newest;
  if (!directory_.none()) {
    const SegmentBytes segment = bytes_of(intent.hash);
    if (segment.header(intent.hash.bin()).pending()) move_own_bin(intent.hash);
    place = segment.find(intent.hash, intent.key);
    if (place) newest = newest_state(services_.image, place->load());
  }
  outcome = {};
  outcome.existed = !newest.record.empty();
  outcome.condition_failed = !holds(intent, newest);
  outcome.applied = !outcome.condition_failed && takes_effect(intent.op, outcome.existed);
  if (!outcome.applied) {
    outcome.wait_for = newest.version;
    return shortage;
  }
  look_for_shortage(intent, place.has_value(), shortage);
  if (!place) {
    const Room room = make_room(intent, shortage);
    outcome.refused = room == Room::refused;
    outcome.no_memory = room == Room::no_memory;
    outcome.applied = room == Room::there;
  }
  if (shortage.any() || !outcome.applied) return shortage;
  commit(intent, place, outcome);
  return shortage;
}

bool Partition::holds(const WriteIntent& intent, const NewestState& newest) const {
  const bool exists = !newest.record.empty();
  const RecordView record(services_.image, newest.record);
  if (intent.help.expected != nullptr) {
    const RecordStamp& expected = *intent.help.expected;
    if (!exists || expected.record.empty()) return exists != expected.record.empty();
    return newest.record == expected.record && record.version() == expected.version &&
           base::load_shared<std::uint32_t>(record.at() + offsetof(RecordHeader, generation)) ==
               expected.generation;
  }
  using Kind = ConditionKind;
  switch (intent.condition.kind) {
    case Kind::none: return true;
    case Kind::absent: return !exists;
    case Kind::present: return exists;
    case Kind::version: return exists && record.version() == intent.condition.version;
    case Kind::value: break;  // compared without the lock: see WriteHelp::expected
  }
  return false;
}

void Partition::look_for_shortage(const WriteIntent& intent, bool has_slot,
                                  Shortage& shortage) const {
  const bool link = has_slot && services_.view.versions;
  std::size_t links = link ? 1 : 0;
  if (intent.op != WriteOp::erase) {
    const RecordClass cls = class_of(intent);
    if (cls == kLinkClass) ++links;
    if (records_[cls].empty()) shortage.cls = cls;
  }
  if (records_[kLinkClass].size() < links) shortage.links = true;
  // A directory, a batch and a link may be retired, and one of them twice.
  shortage.retirement =
      batch_ == nullptr || next_batch_ == nullptr || kept_id_ == 0 || retired_.size() < 4;
}

void Partition::look_for_growth(const WriteIntent& intent, Shortage& shortage) const {
  if (segments_.empty()) {
    if (spare_segment_ == 0) shortage.segment = true;
    if (spare_directory_ == 0 || spare_directory_depth_ != 0) shortage.directory = 0;
    return;
  }
  const Segment& segment = segment_of(intent.hash);
  if (!wants_split(segment) || !intent.may_grow) return;
  lack_of_split(segment, shortage);
  shortage.growth_can_wait = segment.has_room(intent.hash.bin(), 0);
}

// For a key that has no slot. Without memory to grow it continues as long as there is room.
Partition::Room Partition::make_room(const WriteIntent& intent, Shortage& shortage) noexcept {
  if (segments_.empty()) {
    look_for_growth(intent, shortage);
    if (shortage.any()) return Room::lacking;
    if (!begin_first()) return Room::no_memory;
  }
  for (std::uint32_t splits = 0;; ++splits) {
    Segment& segment = segment_of(intent.hash);
    if (wants_split(segment) && intent.may_grow) {
      look_for_growth(intent, shortage);
      if (shortage.any()) return Room::lacking;
      (void)begin_split(segment);  // if it fails there may be room all the same
    }
    Segment& target = segment_of(intent.hash);
    if (make_room_in(target, intent.hash.bin())) {
      return shortage.any() ? Room::lacking : Room::there;
    }
    // A chain that is too long in a segment that is not: no split would make it shorter. Or many
    // keys of one prefix, for which the directory would be far longer than its segments are many.
    const bool worth =
        splits < kSplitsPerWrite && target.slots() >= kSplitSlots / 2 && may_split(target);
    if (!worth) return Room::refused;
    lack_of_split(target, shortage);
    shortage.growth_can_wait = false;
    if (shortage.any()) return Room::lacking;
    if (!begin_split(target)) return Room::no_memory;
  }
}

std::uint64_t Partition::pop(RecordClass cls) noexcept {
  auto& stock = records_[cls];
  const std::uint64_t offset = stock.back();
  stock.pop_back();
  if (!stock.empty()) {  // for the next write: it may have left the cache
    base::prefetch_to_write(services_.image + stock.back());
    base::prefetch_to_write(services_.image + stock.back() + kLineBytes);
  }
  return offset;
}

Slot Partition::fill_record(const WriteIntent& intent) noexcept {
  const std::uint64_t offset = pop(class_of(intent));
  std::byte* const at = services_.image + offset;
  const auto generation = base::load_shared<std::uint32_t>(at + offsetof(RecordHeader, generation));
  base::store_shared<std::uint64_t>(at, 0);
  if (intent.pair) {
    LongRecord whole{};
    whole.header.value_bytes = kLongRecord;
    whole.pair = intent.pair.bits;
    whole.value_bytes = static_cast<std::uint32_t>(intent.value.size());
    whole.key_bytes = static_cast<std::uint16_t>(intent.key.size());
    constexpr std::size_t kBehind = offsetof(RecordHeader, key_bytes);
    std::memcpy(at + kBehind, reinterpret_cast<const std::byte*>(&whole) + kBehind,
                sizeof whole - kBehind);
  } else {
    base::store_plain(at + offsetof(RecordHeader, key_bytes),
                      static_cast<std::uint16_t>(intent.key.size()));
    base::store_plain(at + offsetof(RecordHeader, value_bytes),
                      static_cast<std::uint16_t>(intent.value.size()));
    std::byte* const bytes = at + sizeof(RecordHeader);
    std::memcpy(bytes, intent.key.data(), intent.key.size());
    if (!intent.value.empty()) {
      std::memcpy(bytes + intent.key.size(), intent.value.data(), intent.value.size());
    }
  }
  return Slot::of(offset, generation, intent.hash.tag());
}

Slot Partition::fill_link(const KeyHash& hash, Slot newer, Slot older) noexcept {
  const std::uint64_t offset = pop(kLinkClass);
  std::byte* const at = services_.image + offset;
  const auto generation = base::load_shared<std::uint32_t>(at + offsetof(RecordHeader, generation));
  base::store_plain(at + offsetof(RecordHeader, key_bytes), std::uint16_t{0});
  base::store_plain(at + offsetof(RecordHeader, value_bytes), kVersionLink);
  base::store_shared<std::uint64_t>(at + offsetof(VersionLink, newer), newer.bits);
  base::store_shared<std::uint64_t>(at + offsetof(VersionLink, older), older.bits);
  return Slot::of(offset, generation, hash.tag(), true);
}

void Partition::set_version(Slot slot, std::uint64_t version) noexcept {
  if (!slot.empty()) base::store_shared<std::uint64_t>(services_.image + slot.offset(), version);
}

void Partition::commit(const WriteIntent& intent, std::optional<SlotPlace> place,
                       WriteOutcome& outcome) noexcept {
  const bool erase = intent.op == WriteOp::erase;
  const Slot old = place ? place->load() : Slot{};
  const Slot record = erase ? Slot{} : fill_record(intent);
  const bool linked = place && services_.view.versions;
  const Slot link = linked ? fill_link(intent.hash, record, old) : Slot{};
  const std::uint64_t version = services_.clock.take();  // from here on nothing may fail
  set_version(record, version);
  set_version(link, version);
  std::uint64_t sequence = 0;
  if (!planted(Bug::record_after_release) && !planted(Bug::record_outside_lock)) {
    sequence = intent.hand_over_record(version);
  }
  if (!place) {
    place = segment_of(intent.hash).insert(intent.hash.bin(), record);
  } else if (linked) {
    place->store(link);
  } else if (erase) {
    segment_of(intent.hash).remove(*place);
  } else {
    place->store(record);
  }
  reached(Moment::before_done);
  services_.clock.done(version, sequence);
  if (planted(Bug::record_after_release)) intent.hand_over_record(version);
  outcome.version = outcome.wait_for = version;
  if (linked) {
    take_out_or_keep(intent.hash, *place, version);
  } else if (!old.empty()) {
    retire(old);
  }
  if (outcome.existed != !erase) {
    base::count_own(items_, outcome.existed ? ~std::uint64_t{0} : std::uint64_t{1});
  }
}

bool Partition::stock_records(RecordClass cls, std::span<const std::uint64_t> offsets) noexcept {
  auto& stock = records_[cls];
  if (!base::try_reserve(stock, offsets.size())) {
    const std::size_t room = std::min(stock.capacity() - stock.size(), offsets.size());
    services_.records.give(cls, offsets.subspan(room));
    offsets = offsets.first(room);
  }
  stock.insert(stock.end(), offsets.rbegin(), offsets.rend());
  return !stock.empty();
}

bool Partition::stock_retirement(std::size_t writes) noexcept {
  if (!retired_.reserve(kElements + 2 * (writes - 1))) return false;
  if (!base::try_reserve(more_kept_ids_, writes - 1)) return false;
  while (more_kept_ids_.size() < writes - 1) {
    const std::uint32_t id = services_.retirement.take_kept();
    if (id == 0) return false;
    more_kept_ids_.push_back(id);
  }
  if (batch_ == nullptr) batch_ = services_.retirement.take_batch();
  if (next_batch_ == nullptr) next_batch_ = services_.retirement.take_batch();
  if (kept_id_ == 0) kept_id_ = services_.retirement.take_kept();
  return batch_ != nullptr && next_batch_ != nullptr && kept_id_ != 0;
}

std::uint64_t Partition::records_in_stock() const {
  std::uint64_t count = 0;
  for (const auto& stock : records_) count += stock.size();
  return count;
}

}  // namespace espalier::hash
