// SPDX-License-Identifier: Apache-2.0
// Rows of floats out of a NumPy file (.npy, versions 1 to 3): a matrix of little-endian float32,
// rows behind each other ('<f4', no Fortran order).
//
//   "\x93NUMPY" | version, 2 bytes | length of the header, 2 bytes (from version 2 on 4) |
//   "{'descr': '<f4', 'fortran_order': False, 'shape': (rows, columns), }\n" | rows
//
// The file may say anything: nothing is believed but what is there.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>

#include "base/byte_source.hpp"

namespace espalier::tools {

/// What a file has, as its header says.
struct NpyShape {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;

  friend bool operator==(const NpyShape&, const NpyShape&) = default;
};

/// Of the text between the length and the rows. Errors: what is wrong, in words.
[[nodiscard]] std::expected<NpyShape, std::string> parse_npy_header(std::string_view text);

class NpyReader {
 public:
  /// The source outlives it.
  explicit NpyReader(base::ByteSource& source) : source_(source) {}

  /// Errors: what is wrong with the file, or why it cannot be read, in words.
  [[nodiscard]] std::expected<NpyShape, std::string> open();
  /// Reads some of the rows that are left, as many as there are and as fit; returns how many, 0
  /// behind the last. Errors: as above; the file ends within them, or goes on behind them.
  /// Requires: open() went well; `into` has room for a row.
  [[nodiscard]] std::expected<std::uint64_t, std::string> read(std::span<float> into);

 private:
  [[nodiscard]] std::expected<std::size_t, std::string> fill(std::span<char> into);

  base::ByteSource& source_;
  NpyShape shape_;
  std::uint64_t read_ = 0;  // rows
};

}  // namespace espalier::tools
