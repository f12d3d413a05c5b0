// SPDX-License-Identifier: Apache-2.0
// The rows of one batch in plain text: decrypted just before the batch is worked on, into memory
// that stays in a core's cache, so that no plain text goes through the memory of the node.
//
// Thread: one at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/assert.hpp"
#include "table/ctr_cipher.hpp"
#include "table/snapshot.hpp"

namespace espalier::table {

class DecryptedRows {
 public:
  /// Together, but for a row that is longer.
  static constexpr std::size_t kBytes = std::size_t{32} << 10;

  /// The cipher lives as long.
  DecryptedRows(CtrCipher& cipher, std::uint32_t row_bytes)
      : cipher_(cipher),
        row_bytes_(row_bytes),
        rows_max_(static_cast<std::uint32_t>(std::max<std::size_t>(kBytes / row_bytes, 1))),
        memory_(std::size_t{rows_max_} * row_bytes + kLineBytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    rows_ = memory_.data() + (kLineBytes - address % kLineBytes) % kLineBytes;
  }
  ~DecryptedRows() { cleanse(memory_.data(), memory_.size()); }
  DecryptedRows(const DecryptedRows&) = delete;
  DecryptedRows& operator=(const DecryptedRows&) = delete;

  /// At once.
  [[nodiscard]] std::uint32_t rows_max() const { return rows_max_; }
  [[nodiscard]] std::size_t memory_bytes() const { return memory_.size(); }

  /// Rows of a span from number `first` on. They are there until the next call.
  const std::byte* decrypt(const RowSpan& span, std::uint32_t first, std::uint32_t count) {
    ESPALIER_ASSERT(count <= rows_max_ && span.row_bytes == row_bytes_);
    const std::size_t before = std::size_t{first} * row_bytes_;
    cipher_.apply(span.cipher_page, span.page_offset + before, span.rows + before, rows_,
                  std::size_t{count} * row_bytes_);
    return rows_;
  }

 private:
  static constexpr std::size_t kLineBytes = 64;

  CtrCipher& cipher_;
  std::uint32_t row_bytes_;
  std::uint32_t rows_max_;
  std::vector<std::byte> memory_;
  std::byte* rows_ = nullptr;
};

}  // namespace espalier::table
