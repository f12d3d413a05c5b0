// SPDX-License-Identifier: Apache-2.0
// What an append needs besides the last page: taken first, so that nothing can fail afterwards.
//
// Thread: that of the append whose turn it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kinds/table/table.hpp"

namespace espalier::table {

struct Table::Growth {
  std::uint64_t rows_before = 0;
  std::uint64_t pages_before = 0;
  std::byte* tail = nullptr;              // where the next row lies in the last page
  std::uint64_t tail_rooms = 0;           // rows that it still has room for
  std::vector<std::uint64_t> pages;       // offsets of new ones
  std::vector<std::uint64_t> list_parts;  // likewise
  std::uint64_t cipher_page = 0;          // of the first new page, where the table is encrypted
};

/// Reads each word of the source once: what its owner writes meanwhile changes no word twice.
void copy_words_once(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace espalier::table
