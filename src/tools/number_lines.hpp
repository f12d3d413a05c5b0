// SPDX-License-Identifier: Apache-2.0
// Parses lines of whole numbers from any bytes. Numbers are separated by blanks, tabs or commas; a
// line may end with a carriage return; '#' is a token of its own.
//
// The file is untrusted: only a line is held in memory, up to a limit.
//
// Thread: one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/byte_source.hpp"

namespace espalier::tools {

class NumberLines {
 public:
  /// The token for '#'.
  static constexpr std::int64_t kMark = std::numeric_limits<std::int64_t>::min();
  static constexpr std::size_t kNumbersMax = std::size_t{1} << 24;

  /// The source outlives it.
  explicit NumberLines(base::ByteSource& source) : source_(source) {}

  /// Reads the next line, which may be empty; false: the end. Errors: "line 3: ..." with an invalid
  /// or too large number; why the file cannot be read.
  [[nodiscard]] std::expected<bool, std::string> next();
  [[nodiscard]] std::span<const std::int64_t> numbers() const { return numbers_; }
  /// Number of the last line read, from 1.
  [[nodiscard]] std::uint64_t line() const { return line_; }
  /// Bytes read so far.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_ - (end_ - at_); }
  /// "line 3: " and these words.
  [[nodiscard]] std::unexpected<std::string> wrong(const std::string& words) const;

 private:
  static constexpr int kEnd = -1;

  [[nodiscard]] std::expected<int, std::string> look();
  [[nodiscard]] std::expected<void, std::string> read_number();

  base::ByteSource& source_;
  std::array<char, 65536> buffer_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t line_ = 0;
  std::vector<std::int64_t> numbers_;
};

}  // namespace espalier::tools
