// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/key_layout.hpp"

namespace espalier::table {

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

std::uint64_t KeyLayout::hash(const std::byte* row, const KeyHash& of_words) const {
  std::uint64_t hash = of_words.seed();
  std::size_t at = 0;
  for (; at + 8 <= key_bytes; at += 8) hash = of_words.fold(hash, load_key_word(row + at, 8));
  if (at < key_bytes) hash = of_words.fold(hash, load_key_word(row + at, key_bytes - at));
  for (std::size_t i = 0; i < null_bytes; ++i) {
    const auto mask = i + 1 == null_bytes ? std::byte{last_mask} : std::byte{0xFF};
    hash = of_words.fold(hash, std::to_integer<std::uint64_t>(row[null_offset + i] & mask));
  }
  return hash;
}

}  // namespace espalier::table
