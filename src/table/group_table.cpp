// SPDX-License-Identifier: Apache-2.0
#include "table/group_table.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "base/random.hpp"
#include "table/wide.hpp"

namespace espalier::table {
namespace {

constexpr std::size_t kChunkBytes = 64 * 1024;
constexpr std::size_t kFirstSlots = 64;
/// An index of 2n slots has room for n / 2 rows more than one of n: all are moved long before.
constexpr std::size_t kMigratedSlots = 16;
constexpr std::size_t kRowsMax = 0xFFFF'FFF0;

/// Both halves of a product: every bit of both factors reaches every bit of the result.
std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  const UnsignedWide product = UnsignedWide{a} * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t load_word(const std::byte* at, std::size_t bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, bytes);
  return word;
}

}  // namespace

KeyLayout KeyLayout::of(const Schema& schema, std::size_t key_columns) {
  KeyLayout layout;
  layout.row_bytes = schema.row_bytes();
  if (key_columns == schema.columns().size()) {
    layout.key_bytes = layout.row_bytes;
    return layout;
  }
  unsigned nullable = 0;
  for (std::size_t i = 0; i < key_columns; ++i) {
    const Column& column = schema.column(i);
    layout.key_bytes = column.offset + column.bytes;
    nullable += column.nullable ? 1 : 0;
  }
  layout.null_offset = schema.null_offset();
  layout.null_bytes = (nullable + 7) / 8;
  if (nullable != 0) layout.last_mask = static_cast<std::uint8_t>((2u << (nullable - 1) % 8) - 1);
  return layout;
}

bool KeyLayout::equal(const std::byte* a, const std::byte* b) const {
  if (std::memcmp(a, b, key_bytes) != 0) return false;
  if (null_bytes == 0) return true;
  const std::size_t last = null_offset + null_bytes - 1;
  if (std::memcmp(a + null_offset, b + null_offset, null_bytes - 1) != 0) return false;
  return ((a[last] ^ b[last]) & std::byte{last_mask}) == std::byte{0};
}

std::uint64_t KeyLayout::hash(const std::byte* row, std::uint64_t seed) const {
  // Two secret factors: a key that is 0 in one word does not hide what comes after it.
  const std::uint64_t factor = base::mix64(seed) | 1;
  std::uint64_t hash = seed;
  std::size_t at = 0;
  for (; at + 8 <= key_bytes; at += 8) hash = fold(hash ^ load_word(row + at, 8), factor);
  if (at < key_bytes) hash = fold(hash ^ load_word(row + at, key_bytes - at), factor);
  for (std::size_t i = 0; i < null_bytes; ++i) {
    const auto mask = i + 1 == null_bytes ? std::byte{last_mask} : std::byte{0xFF};
    hash = fold(hash ^ std::to_integer<std::uint64_t>(row[null_offset + i] & mask), factor);
  }
  return base::mix64(hash);
}

GroupTable::GroupTable(const KeyLayout& layout, std::size_t bytes_max, std::uint64_t seed)
    : layout_(layout), bytes_max_(bytes_max), seed_(seed) {
  ESPALIER_ASSERT(bytes_max >= kBytesMin && layout.row_bytes <= kBytesMin / 2);
  const std::size_t chunk_bytes = std::min(kChunkBytes, bytes_max / 8);
  const std::size_t rows = std::max<std::size_t>(1, chunk_bytes / layout.row_bytes);
  chunk_shift_ = static_cast<unsigned>(std::bit_width(rows)) - 1;
  index_ = Index::of(kFirstSlots);
  memory_bytes_ = index_.bytes();
}

void GroupTable::Index::Free::operator()(Slot* memory) const { std::free(memory); }

GroupTable::Index GroupTable::Index::of(std::size_t size) {
  auto* const slots = static_cast<Slot*>(std::calloc(size, sizeof(Slot)));
  if (slots == nullptr) throw std::bad_alloc();
  return {std::unique_ptr<Slot[], Free>(slots), size};
}

GroupTable::Slot* GroupTable::probe(const Index& index, const std::byte* row,
                                    std::uint64_t hash) const {
  const std::size_t mask = index.size - 1;
  const auto tag = static_cast<std::uint32_t>(hash);
  for (std::size_t at = tag & mask;; at = (at + 1) & mask) {
    Slot& slot = index.slots[at];
    if (slot.row == 0) return &slot;
    if (slot.tag == tag && layout_.equal(row, this->row(slot.row - 1))) return &slot;
  }
}

bool GroupTable::grow_index() {
  ESPALIER_ASSERT(old_index_.size == 0);
  // Old and new are there together for a while.
  const std::size_t bytes = 2 * index_.bytes();
  if (bytes > bytes_max_ - std::min(bytes_max_, memory_bytes_)) return false;
  old_index_ = std::exchange(index_, Index::of(2 * index_.size));
  migrated_ = 0;
  memory_bytes_ += bytes;
  return true;
}

/// Moves some slots of the old index. The tag says where each belongs, so no row is read.
void GroupTable::migrate() {
  const std::size_t end = std::min(old_index_.size, migrated_ + kMigratedSlots);
  for (; migrated_ < end; ++migrated_) {
    const Slot slot = old_index_.slots[migrated_];
    if (slot.row == 0) continue;
    std::size_t at = slot.tag & (index_.size - 1);
    while (index_.slots[at].row != 0) at = (at + 1) & (index_.size - 1);
    index_.slots[at] = slot;
  }
  if (end != old_index_.size) return;
  memory_bytes_ -= old_index_.bytes();
  old_index_ = {};
}

bool GroupTable::has_room_for_row() {
  if (size_ >= kRowsMax) return false;
  if (size_ < chunks_.size() << chunk_shift_) return true;
  const std::size_t bytes = std::size_t{layout_.row_bytes} << chunk_shift_;
  if (bytes > bytes_max_ - std::min(bytes_max_, memory_bytes_)) return false;
  chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(bytes));
  memory_bytes_ += bytes;
  return true;
}

GroupTable::Found GroupTable::find_or_insert(const std::byte* row, std::uint64_t hash) {
  if (old_index_.size != 0) migrate();
  const Slot* found = probe(index_, row, hash);
  if (found->row == 0 && old_index_.size != 0) found = probe(old_index_, row, hash);
  if (found->row != 0) return {this->row(found->row - 1), false};
  if ((size_ + 1) * 4 > index_.size * 3 && !grow_index()) return {};
  if (!has_room_for_row()) return {};
  std::byte* const copy = this->row(size_);
  std::memcpy(copy, row, layout_.row_bytes);
  ++size_;
  *probe(index_, row, hash) = {static_cast<std::uint32_t>(hash), static_cast<std::uint32_t>(size_)};
  ESPALIER_ASSERT(memory_bytes_ <= bytes_max_);
  return {copy, true};
}

void GroupTable::clear() {
  if (old_index_.size != 0) memory_bytes_ -= old_index_.bytes();
  old_index_ = {};
  index_ = Index::of(index_.size);
  size_ = 0;
}

}  // namespace espalier::table
