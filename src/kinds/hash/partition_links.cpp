// SPDX-License-Identifier: Apache-2.0
// Version links: how long they stay, and what is retired with them.
//
//   slot -> link(9) -> record(9)
//             |older
//             +-> link(7) -> record(7)       a snapshot at 5 is held, 9 is released:
//                   |older                   link(7) goes, and record(7), which no reader needs
//                   +-> record(3)
//
// Each link that stays has an entry with the reclaimer, which reports when it is not needed any
// more. An entry cannot be cancelled: if its link goes before, another link takes it over.
#include <utility>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"
#include "kinds/hash/partition.hpp"
#include "memory/version_clock.hpp"

namespace espalier::hash {
namespace {

SlotPlace older_of(std::byte* image, Slot link, std::uint32_t bin) {
  return {image + link.offset() + offsetof(VersionLink, older), bin};
}

}  // namespace

void Partition::take_out_or_keep(const KeyHash& hash, const SlotPlace& place,
                                 std::uint64_t version) noexcept {
  // Without room to retire it, a state is taken out by a later write of the key.
  // If the slot is gone, another key's is in its place, which may have a link of this version.
  if (!is_holding() && prune(hash, place, version) == Pruned::gone) return;
  const Slot slot = place.load();
  if (slot.is_link() && RecordView(services_.image, slot).version() == version) {
    keep(hash, slot, version);
  }
}

bool Partition::is_holding() const {
  return services_.holding.load(std::memory_order_acquire) && !planted(Bug::holding_ignored);
}

// Whether the state below a link was replaced, and no snapshot holds it.
bool Partition::is_obsolete(const SlotPlace& at, std::uint64_t released) const {
  const RecordView link(services_.image, at.load());
  const std::uint64_t version = link.version();
  if (version > released) return false;
  const Slot below = link.older();
  if (below.empty()) return true;
  const RecordView state(services_.image, below);
  const bool held = services_.held.any_in(state.version(), version);
  if (held && !planted(Bug::holds_ignored)) return false;
  if (!below.is_link()) return true;
  // A link names a record on one of its sides, so that its key can be determined: of two
  // consecutive links at most one is an erase. So the state further below goes first.
  const Slot behind = state.older();
  const bool absent =
      behind.empty() || (behind.is_link() && RecordView(services_.image, behind).newer().empty());
  return !absent || !link.newer().empty();
}

Partition::Pruned Partition::prune(const KeyHash& hash, const SlotPlace& place,
                                   std::uint64_t fresh) noexcept {
  const std::uint64_t released = services_.clock.released();
  for (;;) {
    std::optional<SlotPlace> lowest;
    SlotPlace at = place;
    for (Slot slot = at.load(); slot.is_link(); slot = at.load()) {
      if (is_obsolete(at, released)) lowest = at;
      at = older_of(services_.image, slot, place.bin);
    }
    if (!lowest) return Pruned::slot_stays;
    if (batch_room() < 2) return Pruned::no_room;
    if (take_out(hash, place, *lowest, fresh)) return Pruned::gone;
  }
}

bool Partition::take_out(const KeyHash& hash, const SlotPlace& place, const SlotPlace& chosen,
                         std::uint64_t& fresh) noexcept {
  const Slot slot = chosen.load();
  const RecordView link(services_.image, slot);
  const std::uint64_t version = link.version();
  const Slot below = link.older();
  raise_purged(version);
  if (below.is_link()) {
    // The link replaces the one below, and takes over its entry: it keeps what that one kept.
    const RecordView state(services_.image, below);
    const Slot record = state.newer();
    services_.retirement.move_entry(hash.bits(), state.version(), version);
    if (version == fresh) fresh = 0;
    older_of(services_.image, slot, place.bin).store(state.older());
    retire(below);
    if (!record.empty()) retire(record);
    return false;
  }
  const bool gone = chosen.at == place.at && link.newer().empty();
  if (gone) {
    segment_of(hash).remove(place);
  } else {
    chosen.store(link.newer());
  }
  if (version != fresh) services_.retirement.drop_entry(hash.bits(), version);
  retire(slot);
  if (!below.empty()) retire(below);
  return gone;
}

// A link is charged with the newest record of the state below, which is kept for its sake.
void Partition::keep(const KeyHash& hash, Slot link, std::uint64_t version) noexcept {
  if (services_.retirement.has_entry(hash.bits(), version))
    return;  // it took over that of the link that it replaced
  std::uint64_t bytes = sizeof(VersionLink);
  const Slot below = RecordView(services_.image, link).older();
  const Slot record = below.empty() ? below : newest_state(services_.image, below).record;
  if (!record.empty()) bytes += services_.retirement.bytes_of(record);
  const LinkEntry entry{hash.bits(), version, bytes, number_};
  if (services_.retirement.reuse_entry(entry)) return;
  services_.retirement.set_kept(kept_id_, entry);
  const memory::Retired retired{0, version, 0, kept_id_, bytes};
  leave(retired);
  kept_id_ = 0;
  if (more_kept_ids_.empty()) return;
  kept_id_ = more_kept_ids_.back();
  more_kept_ids_.pop_back();
}

void Partition::take_out_ready() noexcept {
  while (services_.retirement.any_ready(number_) && batch_room() >= RetiredBatch::kSlots &&
         !is_holding()) {
    const auto ready = services_.retirement.first_ready(number_);
    if (!ready) return;
    const KeyHash hash(ready->entry.hash, services_.view.partition_bits);
    const SegmentBytes segment = bytes_of(hash);
    if (segment.header(hash.bin()).pending()) move_own_bin(hash);
    // Keys that one transaction wrote have links of one version.
    const auto place = segment.find_link(hash, ready->entry.version, [&](Slot slot) {
      return hash_of(any_record(services_.image, slot)).bits() == hash.bits();
    });
    ESPALIER_ASSERT(place);
    if (prune(hash, *place, 0) == Pruned::no_room) return;
    // An entry taken over from another link may be released too early. It is retired again.
    if (!services_.retirement.keep_again(ready->id, ready->entry.version)) continue;
    const memory::Retired retired{0, ready->entry.version, 0, ready->id, ready->entry.bytes};
    leave(retired);
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
  leave(retired);
}

void Partition::leave(const memory::Retired& retired) noexcept {
  memory::RetiredNode* const node = retired_.take();
  node->retired = retired;
  unlinked_.push(node);
}

void hand_over_retired(const HashServices& services, memory::RetiredList retired,
                       memory::RetiredStock& stock) noexcept {
  while (!retired.empty()) {
    memory::RetiredNode* const node = retired.pop();
    const memory::Retired piece = node->retired;
    stock.put(node);
    services.reclaimer.retire(services.object, stock, {&piece, 1});
  }
}

void Partition::flush() noexcept {
  // Without memory of the process for it, ready links wait for the next time.
  const bool any = !segments_.empty();
  do {
    if (any && !stock_retirement()) break;
    take_out_ready();
    if (batch_ != nullptr && batch_->count != 0 && retired_.size() != 0) hand_over();
  } while (services_.retirement.any_ready(number_) && !is_holding());
  for (RecordClass cls = 0; cls < kRecordClasses; ++cls) {
    services_.records.give(cls, records_[cls]);
    records_[cls].clear();
  }
  if (spare_segment_ != 0) {
    services_.pool.release(std::exchange(spare_segment_, 0), memory::bins_class_of(kSegmentBytes));
  }
}

}  // namespace espalier::hash
