// SPDX-License-Identifier: Apache-2.0
// The writes of a transaction in one partition: first all steps that may fail, then all writes
// under one version.
//
//   prepare   key without a slot: slot -> record(unwritten)      key with one: nothing yet
//   publish   record(v)                                          slot -> link(v) -> record(v)
//                                                                        |older -> what it was
//   finish                                                       the link goes, or is kept
//
// An unwritten record has a version above all read versions, so no reader takes it, and a prepared
// write can be reverted.
#include <utility>

#include "base/assert.hpp"
#include "base/own_counter.hpp"
#include "kinds/hash/partition.hpp"
#include "memory/version_clock.hpp"

namespace espalier::hash {

std::optional<SlotPlace> Partition::place_of(const KeyHash& hash, std::string_view key) noexcept {
  if (directory_.none()) return std::nullopt;
  if (bytes_of(hash).header(hash.bin()).pending()) move_own_bin(hash);
  return bytes_of(hash).find(hash, key);
}

NewestState Partition::newest(const KeyHash& hash, std::string_view key) noexcept {
  const auto place = place_of(hash, key);
  return place ? newest_state(services_.image, place->load()) : NewestState();
}

TransactionLack Partition::lack_of(std::span<PreparedWrite> writes) noexcept {
  TransactionLack lacks;
  std::array<std::uint32_t, kRecordClasses> needed{};
  for (PreparedWrite& write : writes) {
    const auto place = place_of(write.intent.hash, write.intent.key);
    write.has_slot = place.has_value();
    write.existed = place && !newest_state(services_.image, place->load()).record.empty();
    write.applies = write.intent.op == WriteOp::put || write.existed;
    if (!write.applies) continue;
    if (write.has_slot) ++needed[kLinkClass];
    if (!write.has_slot && !lacks.growth.any()) {
      look_for_growth(write.intent, lacks.growth);
      lacks.write = static_cast<std::size_t>(&write - writes.data());
    }
    if (write.intent.op == WriteOp::put) ++needed[class_of(write.intent)];
  }
  for (RecordClass cls = 0; cls < kRecordClasses; ++cls) {
    const auto stock = static_cast<std::uint32_t>(records_[cls].size());
    if (stock < needed[cls]) lacks.records[cls] = needed[cls] - stock;
  }
  // Links are identified by version and hash, and those of one transaction share a version.
  for (std::size_t i = 0; i < writes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (writes[i].intent.hash.bits() == writes[j].intent.hash.bits()) lacks.refused = true;
    }
  }
  return lacks;
}

TransactionLack Partition::prepare(std::span<PreparedWrite> writes) noexcept {
  ESPALIER_ASSERT(writes.size() <= RetiredBatch::kSlots);
  take_out_ready();
  move_bins(kBinsPerWrite);
  TransactionLack lacks = lack_of(writes);
  if (lacks.any()) return lacks;
  // A batch in use and an empty one have room for all that withdraw() retires.
  lacks.no_memory = !stock_retirement(writes.size());
  if (lacks.no_memory) return lacks;
  for (PreparedWrite& write : writes) {
    if (!write.applies || write.has_slot) continue;
    place_record(write, lacks);
    if (!lacks.any()) continue;
    lacks.write = static_cast<std::size_t>(&write - writes.data());
    withdraw(writes);
    return lacks;
  }
  return lacks;
}

void Partition::place_record(PreparedWrite& write, TransactionLack& lacks) noexcept {
  const Room room = make_room(write.intent, lacks.growth);
  lacks.refused = room == Room::refused;
  lacks.no_memory = room == Room::no_memory;
  if (room != Room::there) return;
  const KeyHash& hash = write.intent.hash;
  if (bytes_of(hash).header(hash.bin()).pending()) move_own_bin(hash);
  write.placed = fill_record(write.intent);
  set_version(write.placed, kUnwritten);
  segment_of(hash).insert(hash.bin(), write.placed);
}

void Partition::withdraw(std::span<PreparedWrite> writes) noexcept {
  for (PreparedWrite& write : writes) {
    const Slot placed = std::exchange(write.placed, {});
    if (placed.empty()) continue;
    const auto place = place_of(write.intent.hash, write.intent.key);
    ESPALIER_ASSERT(place && place->load() == placed);
    segment_of(write.intent.hash).remove(*place);
    retire(placed);
    write.pair_gone = static_cast<bool>(write.intent.pair);
  }
}

void Partition::publish(std::span<PreparedWrite> writes, std::uint64_t version) noexcept {
  for (PreparedWrite& write : writes) {
    if (!write.applies) continue;
    const bool erase = write.intent.op == WriteOp::erase;
    if (write.has_slot) {
      const auto place = place_of(write.intent.hash, write.intent.key);
      ESPALIER_ASSERT(place);
      const Slot record = erase ? Slot{} : fill_record(write.intent);
      const Slot link = fill_link(write.intent.hash, record, place->load());
      set_version(record, version);
      set_version(link, version);
      place->store(link);
    } else {
      set_version(write.placed, version);
    }
    if (write.existed != !erase) {
      base::count_own(items_, write.existed ? ~std::uint64_t{0} : std::uint64_t{1});
    }
  }
}

void Partition::finish(std::span<PreparedWrite> writes, std::uint64_t version) noexcept {
  for (const PreparedWrite& write : writes) {
    if (!write.applies || !write.has_slot) continue;
    // Located each time: removing one slot moves others.
    const auto place = place_of(write.intent.hash, write.intent.key);
    ESPALIER_ASSERT(place);
    take_out_or_keep(write.intent.hash, *place, version);
  }
}

}  // namespace espalier::hash
