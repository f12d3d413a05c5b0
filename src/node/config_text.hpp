// SPDX-License-Identifier: Apache-2.0
// External text: its characters, and how to display it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace espalier::node {

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  ///< 0: the text does not begin with UTF-8
};

/// The first character. Requires: the text is not empty.
[[nodiscard]] Character first_character(std::string_view text);

/// Whether it is UTF-8 without control characters.
[[nodiscard]] bool is_plain(std::string_view text);

/// The text itself, if it is_plain(); else with "\xNN" for each byte that is not plain ASCII.
[[nodiscard]] std::string printable(std::string_view text);

/// printable() of the text's beginning, in quotes.
[[nodiscard]] std::string in_short_quotes(std::string_view text);

}  // namespace espalier::node
