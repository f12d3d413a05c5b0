// SPDX-License-Identifier: Apache-2.0
// Reads keys and values from a stream of bytes, in order, in memory bounded by the longest record.
// Independent of maps.
//
// An invalid line is reported with its number and reason, and reading continues after it: the
// errors of base/record_splitter.hpp, and besides unknown escapes and a wrong number of columns.
// Such a record is skipped, as far as it reaches.
//
// Invariants: (1) line numbers of records and reports rise, strictly. (2) Every byte of the source
// belongs to exactly one record, report, blank line, header or byte-order mark. (3) What
// record_writer.hpp writes, this reads back, byte for byte (record_reader_fuzz.cpp).
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/record_splitter.hpp"
#include "tools/files.hpp"
#include "tools/record.hpp"

namespace espalier::tools {

struct ReaderOptions {
  std::optional<Format> format;   ///< nullopt: detected by the content
  char separator = ',';           ///< csv
  std::uint32_t key_column = 1;   ///< from 1; csv and tsv
  /// From 1; csv and tsv. nullopt: the column after the key's, if the first record has it;
  /// otherwise values are empty.
  std::optional<std::uint32_t> value_column;
  bool header = false;            ///< the first record names the columns
  bool number_lines = false;      ///< lines: the value is the line's number, in decimal
  /// Longest record, before decoding: a value of 16 MiB with every byte escaped, and its key.
  std::uint64_t record_bytes_max = (std::uint64_t{64} << 20) + (std::uint64_t{64} << 10);
};

class RecordReader {
 public:
  /// Requires: columns are at least 1; `source` outlives the reader.
  RecordReader(ByteSource& source, ReaderOptions options);

  enum class Next : std::uint8_t {
    record = 1,  ///< see record()
    bad = 2,     ///< see bad()
    end = 3,
    failed = 4,  ///< the source failed, see error()
  };
  /// Advances to the next record or bad line.
  [[nodiscard]] Next next();

  /// The current record. Valid until next().
  [[nodiscard]] const Record& record() const { return record_; }
  [[nodiscard]] const BadRecord& bad() const { return bad_; }
  [[nodiscard]] const Error& error() const { return error_; }

  /// The format in use: known after the first next().
  [[nodiscard]] Format format() const { return options_.format.value_or(Format::lines); }
  [[nodiscard]] std::uint64_t consumed_bytes() const { return splitter_.consumed_bytes(); }
  [[nodiscard]] std::uint64_t blank_lines() const { return blank_lines_; }
  /// Columns of the first record; 0 before it.
  [[nodiscard]] std::size_t columns() const { return columns_; }
  /// The header line as it stands in the file, without its line end; empty if there is none.
  [[nodiscard]] const std::string& header() const { return header_; }

 private:
  Next start();
  Next take_record(std::string_view content);
  Next take_fields(std::string_view content);
  Next take_json(std::string_view content);
  Next report(std::string reason);
  Next fail_with(Error error);

  base::RecordSplitter splitter_;
  ReaderOptions options_;
  std::vector<std::string_view> fields_;
  std::string scratch_;        // decoded bytes that fields_ or record_ point to
  std::string value_scratch_;  // likewise, of values that are not fields
  std::string header_;
  Record record_;
  BadRecord bad_;
  Error error_{};
  std::uint64_t blank_lines_ = 0;
  std::size_t columns_ = 0;
  bool started_ = false;
  bool header_pending_ = false;
};

}  // namespace espalier::tools
