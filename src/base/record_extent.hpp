// SPDX-License-Identifier: Apache-2.0
// Where the next record of a text ends, and the grammar of CSV [RFC 4180], as functions of bytes
// alone. base/record_splitter.hpp adds streaming and line numbers.
//
// Thread: safe, no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace espalier::base {

/// The first record of a text.
struct RecordExtent {
  enum class Kind : std::uint8_t {
    complete = 1,          ///< a record, or a blank line
    more = 2,              ///< the text ends inside the record: more bytes are needed to decide
    open_quote = 3,        ///< the file ends inside quotes
    text_after_quote = 4,  ///< something stands between a closing quote and the separator
  };
  Kind kind = Kind::complete;
  std::size_t content_bytes = 0;  ///< without the line's end
  std::size_t total_bytes = 0;    ///< with it
};

/// The first line of `text`. `at_end`: nothing follows the text. Never open_quote or
/// text_after_quote. Requires: `text` is not empty.
[[nodiscard]] RecordExtent line_extent(std::string_view text, bool at_end);

/// The first CSV record of `text`, which may span lines inside quotes. For text_after_quote the
/// extent reaches to the end of the line on which the record went wrong.
/// Requires: `text` is not empty.
[[nodiscard]] RecordExtent csv_extent(std::string_view text, char separator, bool at_end);

/// Takes the content of a complete CSV record apart. The fields point into `content` where they can
/// and into `scratch` where quotes had to be undone. `quoted`, if asked for, says of each field
/// whether it stood in quotes.
void split_csv(std::string_view content, char separator, std::vector<std::string_view>& fields,
               std::string& scratch, std::vector<bool>* quoted = nullptr);

/// Appends a field, in quotes if it would not be read back without. `first`: it is the first of the
/// file, where a byte-order mark would be skipped.
void append_csv_field(std::string& out, std::string_view field, char separator, bool first);
/// Appends a field in quotes.
void append_csv_quoted(std::string& out, std::string_view field);

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace espalier::base
