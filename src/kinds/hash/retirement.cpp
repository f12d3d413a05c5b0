// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/retirement.hpp"

#include <algorithm>
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

bool Retirement::add_entry() noexcept {
  if (!base::try_reserve(entries_, 1)) return false;
  if (by_version_.size() <= entries_.size()) {
    std::vector<std::uint32_t> wider;
    if (!base::try_reserve(wider, std::max<std::size_t>(64, 2 * by_version_.size()))) return false;
    wider.resize(std::max<std::size_t>(64, 2 * by_version_.size()));
    by_version_.swap(wider);
    for (std::uint32_t i = 1; i <= entries_.size(); ++i) {
      const auto state = entry(i).state;
      if (state == Entry::State::kept || state == Entry::State::ready) index(i);
    }
  }
  entries_.emplace_back();
  push(free_entries_, static_cast<std::uint32_t>(entries_.size()));
  return true;
}

std::uint32_t Retirement::find(std::uint64_t hash, std::uint64_t version) const {
  if (by_version_.empty()) return 0;
  const auto is_it = [&](const LinkEntry& link) {
    return link.version == version && link.hash == hash;
  };
  std::uint32_t number = by_version_[version & (by_version_.size() - 1)];
  while (number != 0 && !is_it(entries_[number - 1].link)) number = entries_[number - 1].same;
  return number;
}

void Retirement::index(std::uint32_t number) {
  entry(number).same = std::exchange(bucket_of(entry(number).link.version), number);
}

void Retirement::forget(std::uint32_t number) {
  std::uint32_t* at = &bucket_of(entry(number).link.version);
  while (*at != number) at = &entry(*at).same;
  *at = entry(number).same;
}

void Retirement::push(std::uint32_t& first, std::uint32_t number) {
  if (first != 0) entry(first).previous = number;
  entry(number).previous = 0;
  entry(number).next = std::exchange(first, number);
}

void Retirement::unlink(std::uint32_t& first, std::uint32_t number) {
  const Entry& out = entry(number);
  if (out.next != 0) entry(out.next).previous = out.previous;
  (out.previous != 0 ? entry(out.previous).next : first) = out.next;
}

void Retirement::set_spare(std::uint32_t number) {
  entry(number).state = Entry::State::spare;
  push(spares_of(entry(number).link.bytes), number);
}

void Retirement::set_free(std::uint32_t number) {
  entry(number).state = Entry::State::free;
  push(free_entries_, number);
}

void Retirement::leave_ready(std::uint32_t number) {
  Ready& ready = ready_[entry(number).link.partition];
  unlink(ready.first, number);
  ready.count.fetch_sub(1, std::memory_order_release);
}

std::uint32_t Retirement::take_kept() noexcept {
  const std::lock_guard lock(mutex_);
  if (free_entries_ == 0 && !add_entry()) return 0;
  const std::uint32_t number = free_entries_;
  unlink(free_entries_, number);
  entry(number).state = Entry::State::stocked;
  return number | kKept;
}

void Retirement::set_kept(std::uint32_t id, const LinkEntry& link) noexcept {
  const std::lock_guard lock(mutex_);
  const std::uint32_t number = id & ~kKept;
  entry(number).link = link;
  entry(number).state = Entry::State::kept;
  index(number);
}

bool Retirement::reuse_entry(const LinkEntry& link) noexcept {
  const std::lock_guard lock(mutex_);
  std::uint32_t& first = spares_of(link.bytes);
  const std::uint32_t number = first;
  if (number == 0) return false;
  unlink(first, number);
  const std::uint64_t counted = entry(number).link.bytes;
  entry(number).link = link;
  entry(number).link.bytes = counted;
  entry(number).state = Entry::State::kept;
  index(number);
  return true;
}

void Retirement::move_entry(std::uint64_t hash, std::uint64_t from, std::uint64_t to) noexcept {
  drop_entry(hash, to);
  const std::lock_guard lock(mutex_);
  const std::uint32_t number = find(hash, from);
  ESPALIER_ASSERT(number != 0);
  forget(number);
  entry(number).link.version = to;
  index(number);
}

void Retirement::drop_entry(std::uint64_t hash, std::uint64_t version) noexcept {
  const std::lock_guard lock(mutex_);
  const std::uint32_t number = find(hash, version);
  if (number == 0) return;
  forget(number);
  if (entry(number).state == Entry::State::kept) return set_spare(number);
  leave_ready(number);
  set_free(number);
}

bool Retirement::has_entry(std::uint64_t hash, std::uint64_t version) const noexcept {
  const std::lock_guard lock(mutex_);
  return find(hash, version) != 0;
}

Retirement::EntryNumbers Retirement::entries() const {
  const std::lock_guard lock(mutex_);
  EntryNumbers numbers;
  for (const Entry& one : entries_) {
    if (one.state == Entry::State::kept || one.state == Entry::State::ready) ++numbers.of_links;
    if (one.state == Entry::State::spare) ++numbers.spare;
  }
  return numbers;
}

void Retirement::release(std::uint32_t id) noexcept {
  if ((id & kKept) != 0) {
    const std::lock_guard lock(mutex_);
    const std::uint32_t number = id & ~kKept;
    if (entry(number).state == Entry::State::spare) {
      unlink(spares_of(entry(number).link.bytes), number);
      return set_free(number);
    }
    Ready& ready = ready_[entry(number).link.partition];
    entry(number).state = Entry::State::ready;
    push(ready.first, number);
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
  // Records of one class together; most batches have one or two classes.
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

std::optional<Retirement::ReadyLink> Retirement::first_ready(std::uint32_t partition) const {
  const std::lock_guard lock(mutex_);
  const std::uint32_t number = ready_[partition].first;
  if (number == 0) return std::nullopt;
  return ReadyLink{number | kKept, entries_[number - 1].link};
}

bool Retirement::keep_again(std::uint32_t id, std::uint64_t version) noexcept {
  const std::lock_guard lock(mutex_);
  const std::uint32_t number = id & ~kKept;
  Entry& again = entry(number);
  if (again.state != Entry::State::ready || again.link.version != version) return false;
  leave_ready(number);
  again.state = Entry::State::kept;
  return true;
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
