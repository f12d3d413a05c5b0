// SPDX-License-Identifier: Apache-2.0
// Letters of what people write, where their case means nothing.
//
// Thread: any.
#pragma once

namespace espalier::table {

/// Of ASCII alone.
[[nodiscard]] constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace espalier::table
