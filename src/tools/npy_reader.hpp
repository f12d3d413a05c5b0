// SPDX-License-Identifier: Apache-2.0
// Reads rows of floats from a NumPy file (.npy, versions 1 to 3): a matrix of little-endian float32
// in row-major order ('<f4', no Fortran order).
//
//   "\x93NUMPY" | version, 2 bytes | length of the header, 2 bytes (from version 2 on 4) |
//   "{'descr': '<f4', 'fortran_order': False, 'shape': (rows, columns), }\n" | rows
//
// The file is untrusted.
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

/// Shape of the matrix, from the header.
struct NpyShape {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;

  friend bool operator==(const NpyShape&, const NpyShape&) = default;
};

/// Parses the text between the length and the rows. Errors: the mistake, in words.
[[nodiscard]] std::expected<NpyShape, std::string> parse_npy_header(std::string_view text);

class NpyReader {
 public:
  /// The source outlives it.
  explicit NpyReader(base::ByteSource& source) : source_(source) {}

  /// Errors: a mistake in the file, or why it cannot be read, in words.
  [[nodiscard]] std::expected<NpyShape, std::string> open();
  /// Reads remaining rows, as many as fit; returns their number, 0 at the end. Errors: as above;
  /// the file ends within the rows, or continues after them. Requires: open() succeeded; `into` has
  /// room for a row.
  [[nodiscard]] std::expected<std::uint64_t, std::string> read(std::span<float> into);

 private:
  [[nodiscard]] std::expected<std::size_t, std::string> fill(std::span<char> into);

  base::ByteSource& source_;
  NpyShape shape_;
  std::uint64_t read_ = 0;  // rows
};

}  // namespace espalier::tools
