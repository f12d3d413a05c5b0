// SPDX-License-Identifier: Apache-2.0
// A key and a value as JSON. JSON strings are Unicode, keys and values are bytes: what is UTF-8
// stands as text under "key" and "value", what is not stands in hex under "key_hex" and
// "value_hex". The name tells which, so that nothing is guessed on the way back.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace espalier::tools {

/// Sets member `name` (or `name`_hex) of `object` to `bytes`.
void set_bytes(nlohmann::ordered_json& object, std::string_view name, std::string_view bytes);

/// Appends {"key":...,"value":...}, without a newline, to `out`.
void append_json_record(std::string& out, std::string_view key, std::string_view value);

/// Parses one line. A line without a value has the empty one. Returns what is wrong, or nullopt.
[[nodiscard]] std::optional<std::string> parse_json_record(std::string_view line, std::string& key,
                                                           std::string& value);

}  // namespace espalier::tools
