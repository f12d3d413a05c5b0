// SPDX-License-Identifier: Apache-2.0
// A record's effects in readable form, for people and programs that read a log: the record's kind
// reports them in order.
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace espalier::catalog {

struct RedoNumber {
  std::string_view name;  // lower case and underscores: "first_row", "value_bytes"
  std::uint64_t value = 0;
};

/// One effect. The key points into the record, and may be any bytes; the rest is the kind's own
/// text.
struct RedoEffect {
  std::string_view what;  // a verb: "put", "append"
  std::optional<std::string_view> key{};
  std::span<const RedoNumber> numbers{};  // valid while it is reported
};

}  // namespace espalier::catalog
