// SPDX-License-Identifier: Apache-2.0
// Reads rows from CSV [RFC 4180], in order, in memory bounded by the longest record.
//
// The header line names columns, in any order; omitted columns are null. Without a header, fields
// are in the schema's order. An unquoted field that equals the null text is null; the null text is
// empty by default. In a file of one column a blank line is an empty field; otherwise blank lines
// are skipped.
//
// Invariant: reads the output of kinds/table/csv_writer.hpp back to the same rows.
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/record_splitter.hpp"
#include "kinds/table/schema.hpp"

namespace espalier::table {

struct CsvOptions {
  char separator = ',';
  bool header = true;     ///< the first record names the columns
  std::string null_text{};  ///< without quotes, separators, newlines
  /// Maximum number of wrong lines to skip; the next one ends reading. ~0: any number.
  std::uint64_t skip_bad = 0;
  std::uint64_t record_bytes_max = std::uint64_t{1} << 20;
};

/// The mistake in options; empty: none.
[[nodiscard]] std::string wrong_with(const CsvOptions& options);

/// A mistake, and its location.
struct CsvError {
  std::uint64_t line = 0;  ///< from 1; 0: of no line
  std::string column;      ///< empty: of no single column
  std::string reason;
};
/// One sentence for people, e.g. "line 7, column price: \"x\" is no decimal(12,2)".
[[nodiscard]] std::string describe(const CsvError& error);

/// Why reading failed.
struct CsvFailure {
  Error error;  ///< invalid_argument: see `where`; system: the source failed (detail: errno)
  CsvError where;
};

class CsvReader {
 public:
  static constexpr std::size_t kSkippedKept = 20;

  /// Requires: wrong_with(options) is empty; source and schema outlive the reader.
  CsvReader(base::ByteSource& source, const Schema& schema, CsvOptions options);

  /// Reads rows until `rows` is full or the file ends. Returns their number; fewer than fit only at
  /// the end. After a failure nothing more is read, and the rows of this call are invalid.
  /// Requires: room for whole rows, at least one.
  std::expected<std::size_t, CsvFailure> read(std::span<std::byte> rows);

  /// The number of skipped lines so far, and the first of them.
  [[nodiscard]] std::uint64_t skipped() const { return skipped_; }
  [[nodiscard]] std::span<const CsvError> first_skipped() const { return first_skipped_; }
  [[nodiscard]] std::uint64_t rows() const { return rows_; }
  [[nodiscard]] std::uint64_t consumed_bytes() const { return splitter_.consumed_bytes(); }

 private:
  using Next = base::RecordSplitter::Next;
  enum class Found : std::uint8_t { row, bad, end, failed };

  Found next(std::byte* row);
  Found take_header();
  Found take_row(std::byte* row);
  [[nodiscard]] bool is_blank() const;
  Found bad(std::string reason, std::string column = {});
  Found failed(Error error);

  const Schema& schema_;
  const CsvOptions options_;
  base::RecordSplitter splitter_;
  std::vector<std::size_t> columns_;  // column of each field
  std::vector<std::size_t> absent_;   // columns missing in the file
  std::vector<std::string_view> fields_;
  std::vector<bool> quoted_;
  std::string scratch_;
  CsvFailure failure_;
  std::uint64_t rows_ = 0;
  std::uint64_t skipped_ = 0;
  std::vector<CsvError> first_skipped_;
  bool header_pending_ = false;
  bool ended_ = false;
};

}  // namespace espalier::table
