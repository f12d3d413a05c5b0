// SPDX-License-Identifier: Apache-2.0
// Version links: how long they stay, and what is retired when they go.
//
//   slot -> link(9) -> record(9)
//             |older
//             +-> link(7) -> record(7)       a snapshot at 5 is held, 9 is released:
//                   |older                   link(7) goes, and record(7), which nobody can ask for
//                   +-> record(3)
#include <utility>

#include "base/atomic_bytes.hpp"
#include "kinds/hash/partition.hpp"

namespace espalier::hash {
namespace {

SlotPlace older_of(std::byte* image, Slot link, std::uint32_t bin) {
  return {image + link.offset() + offsetof(VersionLink, older), bin};
}

}  // namespace

void Partition::take_out_or_keep(const KeyHash& hash, const SlotPlace& place, Slot old,
                                 std::uint64_t version) noexcept {
  const std::uint64_t released = services_.clock.released();
  if (released >= version && may_take_out(old) && take_out(hash, place, released)) {
    return;
  }
  keep(hash, version, old);
  if (!services_.holding.load(std::memory_order_acquire)) take_out_between(place);
}

// Whether no snapshot needs what the last write replaced, nor anything older.
bool Partition::may_take_out(Slot old) const {
  if (planted(Bug::holds_ignored)) return true;
  if (services_.holding.load(std::memory_order_acquire)) return false;
  if (services_.snapshots.load(std::memory_order_relaxed) == 0) return true;
  return !old.is_link() && RecordView(services_.image, old).version() >
                               services_.newest_held.load(std::memory_order_relaxed);
}

bool Partition::take_out(const KeyHash& hash, const SlotPlace& place,
                         std::uint64_t limit) noexcept {
  for (;;) {
    // The last link of the chain: what is older than it is a record, or nothing.
    SlotPlace at = place;
    std::optional<SlotPlace> chosen;
    for (Slot slot = at.load(); slot.is_link(); slot = at.load()) {
      if (RecordView(services_.image, slot).version() <= limit) chosen = at;
      at = older_of(services_.image, slot, place.bin);
    }
    if (!chosen) return true;
    if (batch_room() < 2) return false;
    const Slot slot = chosen->load();
    const RecordView link(services_.image, slot);
    const Slot older = link.older();
    raise_purged(link.version());
    const bool gone = chosen->at == place.at && link.newer().empty();
    if (gone) {
      segment_of(hash).remove(place);
    } else {
      chosen->store(link.newer());
    }
    retire(slot);
    if (!older.empty()) retire(older);
    if (gone) return true;
  }
}

// States that begin above the newest snapshot and ended at a released version.
void Partition::take_out_between(const SlotPlace& place) noexcept {
  const std::uint64_t held = services_.newest_held.load(std::memory_order_relaxed);
  const std::uint64_t released = services_.clock.released();
  Slot upper = place.load();
  while (upper.is_link() && batch_room() >= 2) {
    const SlotPlace at = older_of(services_.image, upper, place.bin);
    const Slot lower = at.load();
    if (!lower.is_link()) return;
    const RecordView above(services_.image, upper);
    const RecordView below(services_.image, lower);
    // A link names a record on one of its sides, so that its key can be told: of two links one
    // behind the other, at most one is an erase.
    const Slot behind = below.older();
    const bool absent =
        behind.empty() || (behind.is_link() && RecordView(services_.image, behind).newer().empty());
    if ((absent && above.newer().empty()) || above.version() > released ||
        below.version() <= held) {
      upper = lower;
      continue;
    }
    raise_purged(above.version());
    at.store(behind);
    retire(lower);
    if (!below.newer().empty()) retire(below.newer());
  }
}

void Partition::keep(const KeyHash& hash, std::uint64_t version, Slot old) noexcept {
  const std::uint64_t bytes = sizeof(VersionLink) + services_.retirement.bytes_of(old);
  services_.retirement.set_kept(kept_id_, hash.bits(), version, number_);
  const memory::Retired retired{0, version, 0, kept_id_, bytes};
  services_.reclaimer.retire(services_.object, retired_, {&retired, 1});
  kept_id_ = 0;
}

void Partition::take_out_ready() noexcept {
  while (services_.retirement.any_ready(number_) && batch_room() >= RetiredBatch::kSlots) {
    const auto ready = services_.retirement.first_ready(number_);
    if (!ready) return;
    const KeyHash hash(ready->hash, services_.view.partition_bits);
    const SegmentBytes segment = bytes_of(hash);
    if (segment.header(hash.bin()).pending()) move_bin(hash.bin());
    if (const auto place = segment.find_link(hash, ready->version)) {
      if (!take_out(hash, *place, ready->version)) return;
    }
    services_.retirement.pop_ready(number_, *ready);
  }
}

void Partition::raise_purged(std::uint64_t version) noexcept {
  auto* const line = const_cast<std::byte*>(services_.view.partition_line(number_));
  const auto purged = base::shared<std::uint64_t>(line + offsetof(PartitionLine, purged));
  if (purged.load(std::memory_order_relaxed) < version) {
    purged.store(version, std::memory_order_relaxed);
  }
}

std::uint32_t Partition::batch_room() const {
  if (batch_ == nullptr || retired_.size() < 2) return 0;
  return RetiredBatch::kSlots - batch_->count + (next_batch_ != nullptr ? RetiredBatch::kSlots : 0);
}

void Partition::retire(Slot slot) noexcept {
  if (planted(Bug::record_freed_at_once)) return services_.retirement.free(&slot, 1);
  constexpr std::uint64_t kBytesMax = 256 * 1024;
  batch_->bytes += services_.retirement.bytes_of(slot);
  batch_->slots[batch_->count++] = slot;
  if (batch_->count == RetiredBatch::kSlots ||
      (batch_->bytes > kBytesMax && next_batch_ != nullptr)) {
    hand_over();
  }
}

void Partition::hand_over() noexcept {
  const memory::Retired retired{0, 0, 0, batch_->id, batch_->bytes};
  batch_ = std::exchange(next_batch_, nullptr);
  services_.reclaimer.retire(services_.object, retired_, {&retired, 1});
}

void Partition::flush() noexcept {
  // Without memory of the process for it, what is ready waits for the next time.
  const bool any = !segments_.empty();
  do {
    if (any && !stock_retirement()) break;
    take_out_ready();
    if (batch_ != nullptr && batch_->count != 0 && retired_.size() != 0) hand_over();
  } while (services_.retirement.any_ready(number_));
  for (RecordClass cls = 0; cls < kRecordClasses; ++cls) {
    services_.records.give(cls, records_[cls]);
    records_[cls].clear();
  }
  if (spare_segment_ != 0) {
    services_.pool.release(std::exchange(spare_segment_, 0), memory::bins_class_of(kSegmentBytes));
  }
}

}  // namespace espalier::hash
