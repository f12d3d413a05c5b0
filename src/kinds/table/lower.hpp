// SPDX-License-Identifier: Apache-2.0
// Lower case of ASCII letters, for case-insensitive input.
//
// Thread: any.
#pragma once

namespace espalier::table {

/// ASCII only.
[[nodiscard]] constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace espalier::table
