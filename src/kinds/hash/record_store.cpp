// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/record_store.hpp"

#include <cstddef>
#include <new>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"
#include "base/bytes.hpp"
#include "base/try_reserve.hpp"
#include "memory/extent.hpp"

namespace espalier::hash {
namespace {

std::atomic_ref<std::uint32_t> generation_at(std::byte* record) {
  return base::shared<std::uint32_t>(record + offsetof(RecordHeader, generation));
}

/// The later of two generations in serial-number arithmetic of 32 bits.
constexpr std::uint32_t later(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(b - a) > 0 ? b : a;
}

}  // namespace

RecordStore::~RecordStore() {
  while (free_page() != 0) {
  }
}

// Records in use are freed with it: their generations count, too.
std::uint64_t RecordStore::free_page() noexcept {
  const std::lock_guard lock(mutex_);
  while (!pages_.empty() && pages_.back().offset == 0) pages_.pop_back();
  if (pages_.empty()) return 0;
  Page& page = pages_.back();
  const std::uint64_t end =
      sizeof(RecordPageHeader) + std::uint64_t{page.carved} * kRecordBytes[page.cls];
  for (std::uint64_t at = sizeof(RecordPageHeader); at < end; at += kRecordBytes[page.cls]) {
    const auto generation = generation_at(pool_.at(page.offset + at));
    page.generation_high = later(page.generation_high, generation.load(std::memory_order_relaxed));
  }
  give_to_pool(page);
  pages_.pop_back();
  --numbers_.pages;
  return kPageBytes;
}

std::uint32_t RecordStore::take(RecordClass cls, std::span<std::uint64_t> out) noexcept {
  ESPALIER_ASSERT(cls < kRecordClasses);
  const std::lock_guard lock(mutex_);
  std::uint32_t taken = 0;
  take_loose(cls, out, taken);
  while (taken < out.size()) {
    if (partial_[cls] == kNone) {
      if (taken != 0) break;  // another page is not worth it
      const auto page = pool_.allocate(memory::kRecordsClass);
      if (!page || !add_page(cls, *page)) break;
    }
    const std::uint32_t index = partial_[cls];
    take_from(pages_[index], out, taken);
    if (pages_[index].available() == 0) unlink(index);
  }
  numbers_.records += taken;
  numbers_.record_bytes += std::uint64_t{taken} * kRecordBytes[cls];
  numbers_.free -= taken;
  return taken;
}

bool RecordStore::adopt_page(RecordClass cls, std::uint64_t offset) noexcept {
  const std::lock_guard lock(mutex_);
  return add_page(cls, offset);
}

bool RecordStore::add_page(RecordClass cls, std::uint64_t offset) {
  const std::uint32_t records = (kPageBytes - sizeof(RecordPageHeader)) / kRecordBytes[cls];
  try {
    if (unused_.empty()) {
      base::reserve_more(unused_, pages_.size() + 1);
      pages_.emplace_back();
      unused_.push_back(static_cast<std::uint32_t>(pages_.size() - 1));
    }
    const std::uint32_t index = unused_.back();
    Page& page = pages_[index];
    page.free_stack = std::make_unique_for_overwrite<std::uint16_t[]>(records);
    unused_.pop_back();
    page.offset = offset;
    page.cls = cls;
    page.records = records;
    page.carved = page.free_count = 0;
    std::byte* const at = pool_.at(offset);
    const auto generation =
        base::load_shared<std::uint32_t>(at + offsetof(RecordPageHeader, generation));
    page.generation_first = page.generation_high = next_record_generation(generation);
    base::store_shared<std::uint32_t>(at + offsetof(RecordPageHeader, map_id), map_id_);
    base::store_shared<std::uint64_t>(at + offsetof(RecordPageHeader, created), wire::kNoNode);
    base::store_shared<std::uint32_t>(at + offsetof(RecordPageHeader, record_bytes),
                                      kRecordBytes[cls]);
    base::store_shared<std::uint32_t>(at + offsetof(RecordPageHeader, number), index);
    base::store_shared<std::uint64_t>(at + offsetof(RecordPageHeader, superseded), wire::kLive,
                                      std::memory_order_release);
    link(index);
  } catch (const std::bad_alloc&) {
    pool_.release(offset, memory::kRecordsClass);
    return false;
  }
  ++numbers_.pages;
  numbers_.free += records;
  return true;
}

void RecordStore::take_from(Page& page, std::span<std::uint64_t> out, std::uint32_t& taken) {
  for (; taken < out.size() && page.available() != 0; ++taken) {
    const bool fresh = page.free_count == 0;
    const std::uint32_t slot = fresh ? page.carved++ : page.free_stack[--page.free_count];
    const std::uint64_t offset =
        page.offset + sizeof(RecordPageHeader) + std::uint64_t{slot} * kRecordBytes[page.cls];
    if (fresh) {
      generation_at(pool_.at(offset)).store(page.generation_first, std::memory_order_relaxed);
    }
    out[taken] = offset;
  }
}

void RecordStore::take_loose(RecordClass cls, std::span<std::uint64_t> out, std::uint32_t& taken) {
  auto& loose = loose_[cls];
  for (; taken < out.size() && !loose.empty(); ++taken) {
    out[taken] = loose.back();
    loose.pop_back();
  }
}

void RecordStore::give(RecordClass cls, std::span<const std::uint64_t> offsets) noexcept {
  for (const std::uint64_t offset : offsets) {
    const auto generation = generation_at(pool_.at(offset));
    generation.store(next_record_generation(generation.load(std::memory_order_relaxed)),
                     std::memory_order_release);
  }
  const std::lock_guard lock(mutex_);
  numbers_.records -= offsets.size();
  numbers_.record_bytes -= offsets.size() * kRecordBytes[cls];
  numbers_.free += offsets.size();
  auto& loose = loose_[cls];
  if (loose.size() + offsets.size() > kLooseMax) {
    // The half that was freed first.
    const std::size_t half = loose.size() / 2;
    for (std::size_t i = 0; i < half; ++i) give_to_page(loose[i]);
    loose.erase(loose.begin(), loose.begin() + static_cast<std::ptrdiff_t>(half));
  }
  if (base::try_reserve(loose, offsets.size())) {
    loose.insert(loose.end(), offsets.begin(), offsets.end());
  } else {
    for (const std::uint64_t offset : offsets) give_to_page(offset);
  }
}

void RecordStore::trim() noexcept {
  const std::lock_guard lock(mutex_);
  for (auto& loose : loose_) {
    for (const std::uint64_t offset : loose) give_to_page(offset);
    loose.clear();
  }
}

void RecordStore::give_to_page(std::uint64_t offset) {
  const std::uint32_t index = page_at(offset);
  ESPALIER_ASSERT(index != kNone);
  Page& page = pages_[index];
  const std::uint64_t in_page = offset - page.offset - sizeof(RecordPageHeader);
  ESPALIER_ASSERT(in_page % kRecordBytes[page.cls] == 0 && page.free_count < page.carved);
  page.generation_high =
      later(page.generation_high, generation_at(pool_.at(offset)).load(std::memory_order_relaxed));
  if (page.available() == 0) link(index);
  page.free_stack[page.free_count++] = static_cast<std::uint16_t>(in_page / kRecordBytes[page.cls]);
  // The last page of a class stays, for the next record.
  const bool alone = page.previous == kNone && page.next == kNone;
  if (page.free_count == page.carved && !alone) drop_page(index);
}

void RecordStore::drop_page(std::uint32_t index) {
  Page& page = pages_[index];
  unlink(index);
  --numbers_.pages;
  numbers_.free -= page.records;
  give_to_pool(page);
  page.free_stack.reset();
  page.offset = 0;
  unused_.push_back(index);
}

// The pool hands it out again with a generation above all that its records ever had.
void RecordStore::give_to_pool(const Page& page) {
  const auto generation =
      base::shared<std::uint32_t>(pool_.at(page.offset) + offsetof(RecordPageHeader, generation));
  generation.store(later(generation.load(std::memory_order_relaxed), page.generation_high),
                   std::memory_order_relaxed);
  pool_.release(page.offset, memory::kRecordsClass);
}

std::uint32_t RecordStore::page_at(std::uint64_t offset) const {
  static_assert(memory::class_bytes(memory::kRecordsClass) == kPageBytes &&
                !memory::staggered(memory::kRecordsClass));  // so pages are aligned
  const std::uint64_t begin = base::round_down(offset, kPageBytes);
  const auto index =
      base::load_shared<std::uint32_t>(pool_.at(begin) + offsetof(RecordPageHeader, number));
  return index < pages_.size() && pages_[index].offset == begin ? index : kNone;
}

RecordClass RecordStore::class_at(std::uint64_t offset) const {
  const std::lock_guard lock(mutex_);
  const std::uint32_t index = page_at(offset);
  if (index == kNone) return kRecordClasses;
  const Page& page = pages_[index];
  const std::uint64_t begin = page.offset + sizeof(RecordPageHeader);
  if (offset < begin || (offset - begin) % kRecordBytes[page.cls] != 0) return kRecordClasses;
  const std::uint64_t slot = (offset - begin) / kRecordBytes[page.cls];
  if (slot >= page.carved) return kRecordClasses;
  for (std::uint32_t i = 0; i < page.free_count; ++i) {
    if (page.free_stack[i] == slot) return kRecordClasses;
  }
  return page.cls;
}

RecordStore::Numbers RecordStore::numbers() const {
  const std::lock_guard lock(mutex_);
  return numbers_;
}

void RecordStore::link(std::uint32_t index) {
  Page& page = pages_[index];
  page.previous = kNone;
  page.next = partial_[page.cls];
  if (page.next != kNone) pages_[page.next].previous = index;
  partial_[page.cls] = index;
}

void RecordStore::unlink(std::uint32_t index) {
  Page& page = pages_[index];
  if (page.previous != kNone) {
    pages_[page.previous].next = page.next;
  } else {
    partial_[page.cls] = page.next;
  }
  if (page.next != kNone) pages_[page.next].previous = page.previous;
  page.previous = page.next = kNone;
}

}  // namespace espalier::hash
