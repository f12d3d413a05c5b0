// SPDX-License-Identifier: Apache-2.0
// What a record says was done, for people and programs that read a log: the kind whose record it is
// tells one effect after the other.
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace espalier::catalog {

struct RedoNumber {
  std::string_view name;  // of small letters and underscores: "first_row", "value_bytes"
  std::uint64_t value = 0;
};

/// One effect. Keys point into the record, and are any bytes; the rest is the kind's own text.
struct RedoEffect {
  std::string_view what;  // a verb: "put", "append"
  std::optional<std::string_view> key{};
  std::span<const RedoNumber> numbers{};  // valid while it is told
};

}  // namespace espalier::catalog
