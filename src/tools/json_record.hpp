// SPDX-License-Identifier: Apache-2.0
// A key and a value as JSON. JSON strings are Unicode, keys and values are bytes: valid UTF-8
// stands as text under "key" and "value", other bytes in hex under "key_hex" and "value_hex". The
// name decides, so that parsing guesses nothing.
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

/// Parses one line. A missing value is empty. Returns the mistake, or nullopt.
[[nodiscard]] std::optional<std::string> parse_json_record(std::string_view line, std::string& key,
                                                           std::string& value);

}  // namespace espalier::tools
