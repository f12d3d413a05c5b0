// SPDX-License-Identifier: Apache-2.0
// Numbers in texts of tables, as text_reader.hpp takes them apart.
//
// Thread: any.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>

namespace espalier::dataplane {

inline void put_number(std::string& into, std::uint64_t number, int base = 10) {
  char digits[24];
  into.append(digits, std::to_chars(digits, digits + sizeof digits, number, base).ptr);
}

/// As a word of its own.
inline void put_word(std::string& into, std::uint64_t number, int base = 10) {
  into += ' ';
  put_number(into, number, base);
}

}  // namespace espalier::dataplane
