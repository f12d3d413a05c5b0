// SPDX-License-Identifier: Apache-2.0
// Resources of an append besides the last page, acquired first, so that nothing can fail
// afterwards.
//
// Thread: that of the append with the turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kinds/table/table.hpp"

namespace espalier::table {

struct Table::Growth {
  std::uint64_t rows_before = 0;
  std::uint64_t pages_before = 0;
  std::byte* tail = nullptr;              // position of the next row in the last page
  std::uint64_t tail_rooms = 0;           // rows that still fit there
  std::vector<std::uint64_t> pages;       // offsets of new ones
  std::vector<std::uint64_t> list_parts;  // likewise
  std::uint64_t cipher_page = 0;          // of the first new page, where the table is encrypted
};

/// Copies, reading each word of the source once: a concurrent write changes no word twice.
void copy_words_once(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace espalier::table
