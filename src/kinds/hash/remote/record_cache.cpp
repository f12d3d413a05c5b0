// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/remote/record_cache.hpp"

#include <sys/mman.h>

#include <cstring>
#include <utility>

#include "base/bytes.hpp"
#include "kinds/hash/record_view.hpp"

namespace espalier::place {
namespace {

constexpr std::uint64_t kRecordCachePage = 4096;

std::uint64_t word_at(const std::byte* set, std::uint64_t index) {
  return base::load_plain<std::uint64_t>(set + index * sizeof(std::uint64_t));
}

/// Length of a record with its pair; 0: it is a link, or its pair lies elsewhere.
std::uint64_t bytes_of_record(const std::byte* record) {
  const auto header = base::load_plain<hash::RecordHeader>(record);
  if (header.key_bytes == 0) return 0;
  return sizeof header + std::uint64_t{header.key_bytes} + header.value_bytes;
}

}  // namespace

RecordCache::RecordCache(std::uint64_t bytes) noexcept {
  const std::uint64_t rounded = base::round_down(bytes, kRecordCachePage);
  if (rounded == 0) return;
  auto range = memory::AddressRange::private_memory(rounded, false);
  if (!range || !range->open(0, rounded)) return;
  // Each get reads one random place of it.
  (void)range->advise(0, rounded, MADV_HUGEPAGE);
  memory_ = std::move(*range);
  sets_ = rounded / kSetBytes;
}

std::uint64_t RecordCache::index_of(const std::byte* set, std::uint64_t offset) {
  std::uint64_t index = 0;
  while (index < kPlaces && (word_at(set, index) & ~kPlaceMask) != offset) ++index;
  return index;
}

// Moves the words before it back by one.
void RecordCache::move_to_front(std::byte* set, std::uint64_t index, std::uint64_t word) {
  std::memmove(set + sizeof word, set, index * sizeof word);
  std::memcpy(set, &word, sizeof word);
}

std::span<const std::byte> RecordCache::find(hash::Slot slot) {
  if (sets_ == 0 || slot.is_link() || slot.offset() == 0) return {};
  std::byte* const set = set_of(slot.offset());
  const std::uint64_t index = index_of(set, slot.offset());
  if (index == kPlaces) return {};
  const std::uint64_t word = word_at(set, index);
  const std::byte* const record = set + kHeadBytes + ((word & kPlaceMask) - 1) * kRecordBytes;
  if (!hash::RecordView(nullptr, record, slot).confirmed()) return {};
  move_to_front(set, index, word);
  return {record, bytes_of_record(record)};
}

void RecordCache::keep(std::uint64_t offset, std::span<const std::byte> record) {
  if (sets_ == 0 || offset == 0 || record.size() < sizeof(hash::RecordHeader)) return;
  const std::uint64_t bytes = bytes_of_record(record.data());
  if (bytes == 0 || bytes > kRecordBytes || bytes > record.size()) return;
  std::byte* const set = set_of(offset);
  std::uint64_t index = index_of(set, offset);
  if (index == kPlaces) index = kPlaces - 1;
  // Places are assigned in order.
  while (index != 0 && word_at(set, index) == 0 && word_at(set, index - 1) == 0) --index;
  const std::uint64_t taken = word_at(set, index) & kPlaceMask;
  const std::uint64_t place = taken == 0 ? index + 1 : taken;
  std::memcpy(set + kHeadBytes + (place - 1) * kRecordBytes, record.data(), bytes);
  move_to_front(set, index, offset | place);
}

void RecordCache::forget(std::uint64_t offset) {
  if (sets_ == 0 || offset == 0) return;
  std::byte* const set = set_of(offset);
  const std::uint64_t index = index_of(set, offset);
  if (index == kPlaces) return;
  const std::uint64_t word = word_at(set, index) & kPlaceMask;
  std::memcpy(set + index * sizeof word, &word, sizeof word);
}

}  // namespace espalier::place
