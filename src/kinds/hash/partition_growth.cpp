// SPDX-License-Identifier: Apache-2.0
// Growth of a partition: segments that split bin by bin, and directories that double.
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"
#include "base/own_counter.hpp"
#include "base/try_reserve.hpp"
#include "kinds/hash/partition.hpp"

namespace espalier::hash {
namespace {

memory::SizeClass directory_class(std::uint32_t depth) {
  return memory::bins_class_of(sizeof(DirectoryHeader) + (std::uint64_t{8} << depth));
}
const memory::SizeClass kSegmentClass = memory::bins_class_of(kSegmentBytes);

void store_entry(std::byte* image, PlaceWord directory, std::uint32_t index, PlaceWord segment) {
  base::store_shared<std::uint64_t>(image + directory.offset() + sizeof(DirectoryHeader) +
                                        std::uint64_t{index} * sizeof segment.bits,
                                    segment.bits, std::memory_order_release);
}

}  // namespace

Partition::~Partition() {
  ESPALIER_ASSERT(unlinked_.empty());
  if (spare_segment_ != 0) services_.pool.release(spare_segment_, kSegmentClass);
  if (spare_directory_ != 0) {
    services_.pool.release(spare_directory_, directory_class(spare_directory_depth_));
  }
  for (const auto& segment : segments_) services_.pool.release(segment->offset(), kSegmentClass);
  if (!directory_.none()) {
    services_.pool.release(directory_.offset(), directory_class(directory_.depth()));
  }
}

void Partition::free_long_pairs(const Segment& segment) noexcept {
  const auto free_all = [this](Slot slot) {
    while (!slot.empty()) {
      const RecordView view(services_.image, slot);
      const Slot next = slot.is_link() ? view.older() : Slot{};
      if (slot.is_link() && !view.newer().empty()) {
        const Slot newer = view.newer();
        services_.retirement.free(&newer, 1);
      }
      services_.retirement.free(&slot, 1);
      slot = next;
    }
  };
  SlotPlace places[kChainMax * kSlotsPerBucket];
  for (std::uint32_t bin = 0; bin < kBinsPerSegment; ++bin) {
    const std::uint32_t count = segment.gather(bin, places);
    for (std::uint32_t i = 0; i < count; ++i) free_all(places[i].load());
  }
}

std::uint64_t Partition::free_segment(bool has_long_pairs) noexcept {
  if (segments_.empty()) return 0;
  if (has_long_pairs && batch_ != nullptr) {
    services_.retirement.free(batch_->slots.data(), std::exchange(batch_->count, 0));
  }
  if (has_long_pairs) free_long_pairs(*segments_.back());
  services_.pool.release(segments_.back()->offset(), kSegmentClass);
  segments_.pop_back();
  return kSegmentBytes;
}

void Partition::stock_segment(std::uint64_t offset) noexcept {
  if (spare_segment_ == 0) {
    spare_segment_ = offset;
  } else {
    services_.pool.release(offset, kSegmentClass);
  }
}

void Partition::stock_directory(std::uint32_t depth, std::uint64_t offset) noexcept {
  if (spare_directory_ != 0) {
    services_.pool.release(spare_directory_, directory_class(spare_directory_depth_));
  }
  spare_directory_ = offset;
  spare_directory_depth_ = depth;
}

bool Partition::begin_first() noexcept {
  try {
    base::reserve_more(segments_, 1);
    base::reserve_more(entries_, 1);
    segments_.push_back(std::make_unique<Segment>(services_.image, spare_segment_, services_.map_id,
                                                  number_, 0, 0, false));
  } catch (const std::bad_alloc&) {
    return false;
  }
  spare_segment_ = 0;
  entries_.push_back(0);
  base::count_own(segment_count_);
  publish_directory();
  return true;
}

// Makes the spare buffer the directory, with the current entries.
void Partition::publish_directory() {
  const PlaceWord old = directory_;
  std::byte* const head = services_.image + spare_directory_;
  const auto generation =
      base::load_shared<std::uint32_t>(head + offsetof(DirectoryHeader, generation));
  directory_ = PlaceWord::of(spare_directory_, generation, spare_directory_depth_);
  spare_directory_ = 0;
  base::store_shared<std::uint32_t>(head + offsetof(DirectoryHeader, map_id), services_.map_id);
  base::store_shared<std::uint64_t>(head + offsetof(DirectoryHeader, created), wire::kNoNode);
  base::store_shared<std::uint32_t>(head + offsetof(DirectoryHeader, depth), directory_.depth());
  base::store_shared<std::uint32_t>(head + offsetof(DirectoryHeader, partition), number_);
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    store_entry(services_.image, directory_, i, segments_[entries_[i]]->word());
  }
  base::store_shared<std::uint64_t>(head + offsetof(DirectoryHeader, superseded), wire::kLive,
                                    std::memory_order_release);
  auto* const line = const_cast<std::byte*>(services_.view.partition_line(number_));
  base::store_shared<std::uint64_t>(line + offsetof(PartitionLine, directory), directory_.bits,
                                    std::memory_order_release);
  const std::uint64_t bytes = memory::class_bytes(directory_class(directory_.depth()));
  directory_bytes_.store(bytes, std::memory_order_relaxed);
  if (old.none()) return;
  const memory::Retired retired{old.offset(), 0, directory_class(old.depth()), 0};
  leave(retired);
}

bool Partition::wants_split(const Segment& segment) const {
  return under_way_.empty() && segment.slots() >= kSplitSlots && segment.depth() < kDepthMax;
}

void Partition::lack_of_split(const Segment& segment, Shortage& shortage) const {
  if (spare_segment_ == 0) shortage.segment = true;
  const std::uint32_t depth = segment.depth() + 1;
  if (depth <= directory_.depth()) return;
  if (spare_directory_ == 0 || spare_directory_depth_ != depth) shortage.directory = depth;
}

bool Partition::double_directory() noexcept {
  if (!base::try_reserve(entries_, entries_.size())) return false;
  const std::size_t half = entries_.size();
  entries_.resize(2 * half);
  for (std::size_t i = half; i-- > 0;) entries_[2 * i] = entries_[2 * i + 1] = entries_[i];
  publish_directory();
  return true;
}

void Partition::set_entries(const Segment& segment, std::uint32_t index) {
  const std::uint32_t wide = directory_.depth() - segment.depth();
  const std::uint32_t first = segment.prefix() << wide;
  for (std::uint32_t i = first; i < first + (1u << wide); ++i) {
    entries_[i] = index;
    store_entry(services_.image, directory_, i, segment.word());
  }
}

bool Partition::begin_split(Segment& segment) noexcept {
  ESPALIER_ASSERT(split_of(segment) == nullptr && spare_segment_ != 0 &&
                  segment.depth() < kDepthMax);
  if (!base::try_reserve(segments_, 1) || !base::try_reserve(under_way_, 1)) return false;
  const std::uint32_t parent = entries_[segment.prefix() << (directory_.depth() - segment.depth())];
  if (segment.depth() == directory_.depth() && !double_directory()) return false;
  std::unique_ptr<Segment> child;
  try {
    child = std::make_unique<Segment>(services_.image, spare_segment_, services_.map_id, number_,
                                      segment.prefix() << 1 | 1, segment.depth() + 1, true);
  } catch (const std::bad_alloc&) {
    return false;
  }
  spare_segment_ = 0;
  segment.deepen();
  under_way_.push_back({&segment, child.get(), 0});
  segments_.push_back(std::move(child));
  set_entries(*segments_.back(), static_cast<std::uint32_t>(segments_.size() - 1));
  set_entries(segment, parent);
  base::count_own(segment_count_);
  base::count_own(splits_);
  return true;
}

KeyHash Partition::hash_of(Slot slot) const {
  const RecordView record(services_.image, any_record(services_.image, slot));
  if (record.is_long()) return {record.long_hash(), services_.view.partition_bits};
  return services_.view.hash(record.pair().key);
}

const Partition::Split* Partition::split_of(const Segment& segment) const {
  for (const Split& split : under_way_) {
    if (split.parent == &segment || split.child == &segment) return &split;
  }
  return nullptr;
}

void Partition::move_own_bin(const KeyHash& hash) noexcept {
  const Split* const split = split_of(segment_of(hash));
  if (split != nullptr) move_bin(*split, hash.bin());
}

void Partition::move_bin(const Split& split, std::uint32_t bin) noexcept {
  Segment& parent = *split.parent;
  Segment& child = *split.child;
  if (!child.header(bin).pending()) return;
  base::count_own(bins_moved_);
  SlotPlace places[kChainMax * kSlotsPerBucket];
  const std::uint32_t count = parent.gather(bin, places);
  for (std::uint32_t i = 0; i < count; ++i) {
    __builtin_prefetch(services_.image + places[i].load().offset());
  }
  bool goes[kChainMax * kSlotsPerBucket];
  for (std::uint32_t i = 0; i < count; ++i) {
    const Slot slot = places[i].load();
    goes[i] = hash_of(slot).bit_at(child.depth() - 1);
    if (goes[i]) child.insert(bin, slot);
  }
  child.arrived(bin);
  parent.departed(bin);
  // From the last one on: a slot that fills a gap comes from behind, and stays.
  for (std::uint32_t i = count; i-- > 0;) {
    if (goes[i]) parent.remove(places[i]);
  }
}

void Partition::move_next(std::size_t which) noexcept {
  Split& split = under_way_[which];
  move_bin(split, split.next);
  if (++split.next == kBinsPerSegment) {
    under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(which));
  }
}

void Partition::move_bins(std::uint32_t count) noexcept {
  for (; !under_way_.empty() && count != 0; --count) move_next(0);
}

bool Partition::make_room_in(const Segment& segment, std::uint32_t bin) noexcept {
  for (;;) {
    const Split* const split = split_of(segment);
    if (split == nullptr) return segment.has_room(bin, 0);
    move_bin(*split, bin);
    // Leaves the overflow buckets that the new half of a split may still need.
    const std::uint32_t reserve = &segment == split->child ? split->parent->used_buckets() : 0;
    if (segment.has_room(bin, reserve)) return true;
    move_next(static_cast<std::size_t>(split - under_way_.data()));
  }
}

}  // namespace espalier::hash
