// SPDX-License-Identifier: Apache-2.0
// Cuts a stream of bytes into records, lines or CSV, in memory bounded by the longest record.
//
// What is no record is reported with its line and reason, and reading goes on behind it:
//   - something behind a closing quote: the record is left out, as far as it reaches;
//   - a quote that never closes: only the line that opens it is left out. The lines behind it are
//     read again on their own, for one stray quote must not swallow the rest of a file;
//   - a record beyond the length limit: its first line is left out likewise, without being kept.
//
// Invariants: (1) line numbers rise, strictly. (2) Every byte of the source belongs to exactly one
// record, report, blank line or byte-order mark. (3) The pieces in which the source comes make no
// difference.
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/byte_window.hpp"
#include "base/record_extent.hpp"

namespace espalier::base {

class RecordSplitter {
 public:
  struct Options {
    /// Of CSV fields; nullopt: each line is a record.
    std::optional<char> separator{};
    std::uint64_t record_bytes_max = std::uint64_t{64} << 20;
  };
  /// Requires: `source` outlives the splitter.
  RecordSplitter(ByteSource& source, Options options) : window_(source), options_(options) {}

  enum class Next : std::uint8_t {
    record = 1,  ///< see content(); of a blank line it is empty
    bad = 2,     ///< see reason()
    end = 3,
    failed = 4,  ///< the source failed, see error()
  };
  /// Goes on to the next record, blank line or bad line. The first call skips a byte-order mark.
  [[nodiscard]] Next next();

  /// Reads the first bytes, `bytes` of them and more or all that there are, before the first
  /// next(). Errors: as ByteSource::read.
  [[nodiscard]] Result<std::string_view> sample(std::size_t bytes);
  /// Whether nothing follows the sample.
  [[nodiscard]] bool sample_is_all() const { return window_.at_end(); }
  /// Says what records are, before the first next().
  void set_separator(std::optional<char> separator) { options_.separator = separator; }

  /// The record at hand, without the line's end. Valid until next().
  [[nodiscard]] std::string_view content() const { return content_; }
  /// The line on which the record or report at hand begins, from 1.
  [[nodiscard]] std::uint64_t line() const { return record_line_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }
  [[nodiscard]] const Error& error() const { return error_; }
  [[nodiscard]] std::uint64_t consumed_bytes() const { return window_.consumed_bytes(); }

 private:
  [[nodiscard]] RecordExtent extent() const;
  Next take(RecordExtent extent);
  Next take_overlong(std::string_view begin);
  Next leave_line_out(std::string reason);
  Next report(std::string reason);
  Next fail_with(Error error);
  void release();

  ByteWindow window_;
  Options options_;
  std::string_view content_;
  std::string reason_;
  Error error_{};
  std::size_t pending_bytes_ = 0;  // of the record at hand, given up by the next next()
  std::uint64_t record_line_ = 1;
  std::uint64_t line_ = 1;  // number of the line that the view begins with
  bool started_ = false;
};

}  // namespace espalier::base
