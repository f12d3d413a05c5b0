// SPDX-License-Identifier: Apache-2.0
// Where the next record of a text ends, and how its fields are taken apart: the grammars of CSV and
// TSV, as functions of bytes alone. The reader (record_reader.hpp) adds streaming and line numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace espalier::tools {

/// The first record of a text.
struct Extent {
  enum class Kind : std::uint8_t {
    complete = 1,         ///< a record, or a blank line
    more = 2,             ///< the text ends inside the record: it can only be told with more bytes
    open_quote = 3,       ///< the file ends inside quotes
    text_after_quote = 4, ///< something stands between a closing quote and the separator
  };
  Kind kind = Kind::complete;
  std::size_t content_bytes = 0;  ///< without the line's end
  std::size_t total_bytes = 0;    ///< with it
};

/// The first line of `text`. `at_end`: nothing follows the text. Never open_quote or
/// text_after_quote. Requires: `text` is not empty.
[[nodiscard]] Extent line_extent(std::string_view text, bool at_end);

/// The first CSV record of `text`, which may span lines inside quotes. For text_after_quote the
/// extent reaches to the end of the line on which the record went wrong.
/// Requires: `text` is not empty.
[[nodiscard]] Extent csv_extent(std::string_view text, char separator, bool at_end);

/// Takes the content of a complete CSV record apart. The fields point into `content` where they can
/// and into `scratch` where quotes had to be undone.
void split_csv(std::string_view content, char separator, std::vector<std::string_view>& fields,
               std::string& scratch);

/// Takes a TSV line apart, likewise. Returns what is wrong with it, or nullopt.
[[nodiscard]] std::optional<std::string> split_tsv(std::string_view content,
                                                   std::vector<std::string_view>& fields,
                                                   std::string& scratch);

}  // namespace espalier::tools
