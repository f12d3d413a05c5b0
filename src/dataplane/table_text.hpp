// SPDX-License-Identifier: Apache-2.0
// Tables as text, to be stored, compared, and read by people and other programs; docs/formats/
// index_tables.md has the grammar. Numbers are decimal, keys and addresses hexadecimal.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

#include "dataplane/index_tables.hpp"

namespace espalier::dataplane {

[[nodiscard]] std::string to_text(const IndexTables& tables);

/// What is wrong with a text.
struct TextFault {
  std::size_t line = 0;  // the first is 1; 0: the tables as a whole
  std::string reason;
};

/// Parses any text, trusted or not. What it returns has passed check(). Cost: linear; memory: at
/// most a hundred bytes for each of the text, whatever it says.
[[nodiscard]] std::expected<IndexTables, TextFault> parse_tables(std::string_view text);

}  // namespace espalier::dataplane
