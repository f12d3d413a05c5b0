// SPDX-License-Identifier: Apache-2.0
// Lines of whole numbers out of any bytes: numbers stand between blanks, tabs or commas; a line may
// end with a carriage return; '#' stands for itself.
//
// The file may say anything: a line is held in memory, up to a limit, and nothing else.
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
  /// What stands for '#'.
  static constexpr std::int64_t kMark = std::numeric_limits<std::int64_t>::min();
  static constexpr std::size_t kNumbersMax = std::size_t{1} << 24;

  /// The source outlives it.
  explicit NumberLines(base::ByteSource& source) : source_(source) {}

  /// Reads the next line, which may have no numbers; false: there is none.
  /// Errors: "line 3: ..." what is no number, or too large; why the file cannot be read.
  [[nodiscard]] std::expected<bool, std::string> next();
  [[nodiscard]] std::span<const std::int64_t> numbers() const { return numbers_; }
  /// Of the line that was read last, from 1.
  [[nodiscard]] std::uint64_t line() const { return line_; }
  /// Read so far.
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
