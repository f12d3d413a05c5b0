// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/decrypted_rows.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "kinds/table/batch_kernels.hpp"

namespace espalier::table {

namespace {

std::uint32_t rows_together(std::uint32_t row_bytes, std::size_t lines) {
  const std::size_t wanted = lines == 0 ? row_bytes : lines * DecryptedRows::kLineBytes;
  return static_cast<std::uint32_t>(
      std::clamp<std::size_t>(DecryptedRows::kBytes / wanted, 1, kBatchRows));
}

}  // namespace

std::size_t DecryptedRows::bytes_of(std::uint32_t row_bytes, std::size_t lines) {
  return std::size_t{rows_together(row_bytes, lines)} * row_bytes + kLineBytes;
}

DecryptedRows::DecryptedRows(CtrCipher& cipher, std::uint32_t row_bytes, std::size_t lines)
    : cipher_(cipher), row_bytes_(row_bytes), rows_max_(rows_together(row_bytes, lines)) {
  memory_.resize(bytes_of(row_bytes, lines));
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
  rows_ = memory_.data() + (kLineBytes - address % kLineBytes) % kLineBytes;
}

const std::byte* DecryptedRows::begin(const RowSpan& span, std::uint32_t first,
                                      std::uint32_t count) {
  ESPALIER_ASSERT(count <= rows_max_ && span.row_bytes == row_bytes_);
  const std::size_t before = std::size_t{first} * row_bytes_;
  from_ = span.rows + before;
  count_ = count;
  page_ = span.cipher_page;
  offset_ = span.page_offset + before;
  return rows_;
}

void DecryptedRows::decrypt_all() {
  cipher_.apply(page_, offset_, from_, rows_, std::size_t{count_} * row_bytes_);
}

void DecryptedRows::decrypt_lines(std::uint32_t row, std::span<const std::uint32_t> lines) {
  const std::size_t begin = std::size_t{row} * row_bytes_;
  for (std::size_t i = 0; i < lines.size();) {
    std::size_t end = i + 1;
    while (end < lines.size() && lines[end] == lines[end - 1] + 1) ++end;
    const std::size_t at = lines[i] * kLineBytes;
    const std::size_t bytes = std::min<std::size_t>(
        (end - i) * kLineBytes, row_bytes_ - std::min<std::size_t>(at, row_bytes_));
    cipher_.apply(page_, offset_ + begin + at, from_ + begin + at, rows_ + begin + at, bytes);
    i = end;
  }
}

}  // namespace espalier::table
