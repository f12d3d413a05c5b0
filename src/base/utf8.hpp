// SPDX-License-Identifier: Apache-2.0
// Well-formed UTF-8 [RFC 3629].
//
// Thread: safe, no state.
#pragma once

#include <cstddef>
#include <string_view>

namespace espalier::base {

/// Length in bytes (1 to 4) of the well-formed UTF-8 sequence at the front of `text`; 0 if there is
/// none (overlong forms, surrogates and numbers above 10FFFF are not well-formed).
[[nodiscard]] std::size_t utf8_sequence_bytes(std::string_view text);

/// How many bytes at the front of `text` are well-formed; all of them, or up to the first that
/// begins no sequence.
[[nodiscard]] std::size_t utf8_prefix_bytes(std::string_view text);

/// Whether all of `text` is well-formed UTF-8.
[[nodiscard]] inline bool is_utf8(std::string_view text) {
  return utf8_prefix_bytes(text) == text.size();
}

}  // namespace espalier::base
