// SPDX-License-Identifier: Apache-2.0
// The rows of one batch in plain text: decrypted just before the batch is worked on, into memory
// that stays in a core's cache, so that no plain text goes through the memory of the node.
//
// Whole rows, or only those of their lines that are wanted; what lies in the others is anything.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kinds/table/ctr_cipher.hpp"
#include "kinds/table/snapshot.hpp"

namespace espalier::table {

class DecryptedRows {
 public:
  static constexpr std::size_t kLineBytes = 64;
  /// Rows together, but for one that is longer; of those of which lines are wanted, so many lines.
  static constexpr std::size_t kBytes = std::size_t{32} << 10;

  /// What memory_bytes() will be.
  [[nodiscard]] static std::size_t bytes_of(std::uint32_t row_bytes, std::size_t lines);
  /// `lines`: how many of a row are wanted; 0: all of it. The cipher lives as long.
  DecryptedRows(CtrCipher& cipher, std::uint32_t row_bytes, std::size_t lines);
  ~DecryptedRows() { crypto::cleanse(memory_.data(), memory_.size()); }
  DecryptedRows(const DecryptedRows&) = delete;
  DecryptedRows& operator=(const DecryptedRows&) = delete;

  /// At once.
  [[nodiscard]] std::uint32_t rows_max() const { return rows_max_; }
  [[nodiscard]] std::size_t memory_bytes() const { return memory_.size(); }

  /// The rows of a span from number `first` on, `count` of them, are the batch now; all that is
  /// decrypted of them lies where this returns. Requires: at most rows_max().
  const std::byte* begin(const RowSpan& span, std::uint32_t first, std::uint32_t count);
  void decrypt_all();
  /// Lines of a row of the batch, ascending.
  void decrypt_lines(std::uint32_t row, std::span<const std::uint32_t> lines);

 private:
  CtrCipher& cipher_;
  std::uint32_t row_bytes_;
  std::uint32_t rows_max_;
  std::vector<std::byte> memory_;
  std::byte* rows_ = nullptr;
  const std::byte* from_ = nullptr;  // the batch
  std::uint32_t count_ = 0;
  std::uint64_t page_ = 0;
  std::uint64_t offset_ = 0;
};

}  // namespace espalier::table
