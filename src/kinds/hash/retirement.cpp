// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/retirement.hpp"

#include <new>
#include <utility>

#include "base/assert.hpp"
#include "base/try_reserve.hpp"
#include "kinds/hash/record_view.hpp"

namespace espalier::hash {
namespace {

memory::SizeClass class_of_pair(const RecordView& record) {
  const Pair pair = record.pair();
  return memory::BufferPool::class_of(sizeof(LongPairHeader) + pair.key.size() + pair.value.size());
}

RecordClass class_of_record(const RecordView& record) {
  const Pair pair = record.pair();
  return record_class_of(sizeof(RecordHeader) + pair.key.size() + pair.value.size());
}

}  // namespace

RetiredBatch* Retirement::take_batch() noexcept {
  const std::lock_guard lock(mutex_);
  if (free_batches_.empty()) {
    try {
      base::reserve_more(free_batches_, batches_.size() + 1);
      batches_.push_back(std::make_unique<RetiredBatch>());
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    batches_.back()->id = static_cast<std::uint32_t>(batches_.size());
    return batches_.back().get();
  }
  RetiredBatch* const batch = batches_[free_batches_.back() - 1].get();
  free_batches_.pop_back();
  return batch;
}

void Retirement::give_batch(RetiredBatch& batch) noexcept {
  ESPALIER_ASSERT(batch.count == 0);
  const std::lock_guard lock(mutex_);
  free_batches_.push_back(batch.id);
}

std::uint32_t Retirement::take_kept() noexcept {
  const std::lock_guard lock(mutex_);
  if (free_kept_ == 0) {
    if (!base::try_reserve(kept_, 1)) return 0;
    kept_.emplace_back();
    return static_cast<std::uint32_t>(kept_.size()) | kKept;
  }
  const std::uint32_t id = free_kept_;
  free_kept_ = kept_[id - 1].next;
  return id | kKept;
}

void Retirement::give_kept(std::uint32_t id) noexcept {
  const std::lock_guard lock(mutex_);
  kept_[(id & ~kKept) - 1].next = std::exchange(free_kept_, id & ~kKept);
}

void Retirement::set_kept(std::uint32_t id, std::uint64_t hash, std::uint64_t version,
                          std::uint32_t partition) noexcept {
  const std::lock_guard lock(mutex_);
  kept_[(id & ~kKept) - 1] = {hash, version, partition, 0};
}

void Retirement::release(std::uint32_t id) noexcept {
  if ((id & kKept) != 0) {
    const std::lock_guard lock(mutex_);
    KeptLink& kept = kept_[(id & ~kKept) - 1];
    Ready& ready = ready_[kept.partition];
    kept.next = std::exchange(ready.first, id & ~kKept);
    ready.count.fetch_add(1, std::memory_order_release);
    return;
  }
  RetiredBatch* batch = nullptr;
  {
    const std::lock_guard lock(mutex_);
    batch = batches_[id - 1].get();
  }
  free(batch->slots.data(), batch->count);
  batch->count = 0;
  batch->bytes = 0;
  give_batch(*batch);
}

void Retirement::free(const Slot* slots, std::uint32_t count) noexcept {
  for (std::uint32_t i = 0; i < count; ++i) __builtin_prefetch(pool_.at(slots[i].offset()), 1);
  std::array<std::uint64_t, RetiredBatch::kSlots> offsets;
  std::array<RecordClass, RetiredBatch::kSlots> classes;
  ESPALIER_ASSERT(count <= offsets.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    offsets[i] = slots[i].offset();
    classes[i] = free_pair(slots[i]);
  }
  // Those of one class together; most batches have one or two.
  for (std::uint32_t begin = 0; begin < count;) {
    const RecordClass cls = classes[begin];
    std::uint32_t end = begin;
    for (std::uint32_t i = begin; i < count; ++i) {
      if (classes[i] != cls) continue;
      std::swap(offsets[i], offsets[end]);
      std::swap(classes[i], classes[end]);
      ++end;
    }
    records_.give(cls, {&offsets[begin], end - begin});
    begin = end;
  }
}

RecordClass Retirement::free_pair(Slot slot) noexcept {
  const RecordView record(pool_.at(0), slot);
  if (slot.is_link()) return kLinkClass;
  if (!record.is_long()) return class_of_record(record);
  const memory::SizeClass cls = class_of_pair(record);
  pool_.release(record.long_pair().offset(), cls);
  long_bytes.fetch_sub(memory::BufferPool::class_bytes(cls), std::memory_order_relaxed);
  return kLinkClass;
}

std::optional<KeptLink> Retirement::first_ready(std::uint32_t partition) const {
  const std::lock_guard lock(mutex_);
  const std::uint32_t id = ready_[partition].first;
  if (id == 0) return std::nullopt;
  KeptLink first = kept_[id - 1];
  first.next = id;
  return first;
}

// What became ready meanwhile stands before it.
void Retirement::pop_ready(std::uint32_t partition, const KeptLink& first) noexcept {
  const std::lock_guard lock(mutex_);
  Ready& ready = ready_[partition];
  std::uint32_t* at = &ready.first;
  while (*at != first.next) at = &kept_[*at - 1].next;
  *at = kept_[first.next - 1].next;
  kept_[first.next - 1].next = std::exchange(free_kept_, first.next);
  ready.count.fetch_sub(1, std::memory_order_release);
}

std::uint64_t Retirement::bytes_of(Slot slot) const {
  if (slot.is_link()) return sizeof(VersionLink);
  const RecordView record(pool_.at(0), slot);
  if (record.is_long()) {
    return sizeof(LongRecord) + memory::BufferPool::class_bytes(class_of_pair(record));
  }
  return kRecordBytes[class_of_record(record)];
}

}  // namespace espalier::hash
