// SPDX-License-Identifier: Apache-2.0
// The rows of one batch in plain text, decrypted just before the batch is processed, into memory
// that stays in a core's cache, so that no plain text goes through the memory of the node.
//
// Decrypts whole rows, or only their wanted lines; other lines are unspecified.
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
  /// Memory for rows together, unless one row is longer; with wanted lines, for so many lines.
  static constexpr std::size_t kBytes = std::size_t{32} << 10;

  /// The value of memory_bytes() beforehand.
  [[nodiscard]] static std::size_t bytes_of(std::uint32_t row_bytes, std::size_t lines);
  /// `lines`: number of wanted lines of a row; 0: all of it. The cipher outlives it.
  DecryptedRows(CtrCipher& cipher, std::uint32_t row_bytes, std::size_t lines);
  ~DecryptedRows() { crypto::cleanse(memory_.data(), memory_.size()); }
  DecryptedRows(const DecryptedRows&) = delete;
  DecryptedRows& operator=(const DecryptedRows&) = delete;

  /// Most rows of one batch.
  [[nodiscard]] std::uint32_t rows_max() const { return rows_max_; }
  [[nodiscard]] std::size_t memory_bytes() const { return memory_.size(); }

  /// Makes `count` rows of a span from number `first` on the batch; returns where their plain text
  /// lies. Requires: at most rows_max().
  const std::byte* begin(const RowSpan& span, std::uint32_t first, std::uint32_t count);
  void decrypt_all();
  /// Decrypts these lines of a row of the batch, ascending.
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
