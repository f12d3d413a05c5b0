// SPDX-License-Identifier: Apache-2.0
// Rows from CSV [RFC 4180], one after another, in memory bounded by the longest record.
//
// The header line names columns, in any order; those that it leaves out are null. Without one, the
// columns stand in the schema's order. A field that is the null text, and not in quotes, is null;
// the null text is empty unless the options say something else. Where the file has one column, a
// blank line is an empty field; elsewhere it is nothing.
//
// Invariant: what kinds/table/csv_writer.hpp writes, this reads back to the same rows.
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
  /// So many wrong lines are left out; the next one ends the reading. ~0: any number.
  std::uint64_t skip_bad = 0;
  std::uint64_t record_bytes_max = std::uint64_t{1} << 20;
};

/// What is wrong with options; empty: nothing.
[[nodiscard]] std::string wrong_with(const CsvOptions& options);

/// Where something is wrong, and what.
struct CsvError {
  std::uint64_t line = 0;  ///< from 1; 0: of no line
  std::string column;      ///< empty: of no single column
  std::string reason;
};
/// One sentence for people, e.g. "line 7, column price: \"x\" is no decimal(12,2)".
[[nodiscard]] std::string describe(const CsvError& error);

/// Why reading ended before the end.
struct CsvFailure {
  Error error;  ///< invalid_argument: see `where`; system: the source failed (detail: errno)
  CsvError where;
};

class CsvReader {
 public:
  static constexpr std::size_t kSkippedKept = 20;

  /// Requires: wrong_with(options) is empty; source and schema outlive the reader.
  CsvReader(base::ByteSource& source, const Schema& schema, CsvOptions options);

  /// Reads rows until `rows` is full or the file ends. Returns how many; fewer than there is room
  /// for only at the end. After a failure nothing more is read, and the rows of this call are not
  /// to be used. Requires: room for whole rows, at least one.
  std::expected<std::size_t, CsvFailure> read(std::span<std::byte> rows);

  /// Lines left out so far, and the first of them.
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
  std::vector<std::size_t> columns_;  // of each field: the column that it is
  std::vector<std::size_t> absent_;   // columns that the file has not
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
