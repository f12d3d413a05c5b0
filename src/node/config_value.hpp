// SPDX-License-Identifier: Apache-2.0
// One value of a setting: parsed from a file, a variable or a flag, checked against the setting's
// limits, and printed.
//
// All input is untrusted; all output can be shown on a terminal.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace espalier::node {

/// A setting's value: bytes, counts and levels are numbers.
using Value = std::variant<std::string, std::uint64_t, bool>;

enum class Kind : std::uint8_t {
  path,          ///< text of min to max bytes: UTF-8 without control characters
  name,          ///< min to max letters, digits, '_', '-' and '.'
  count,         ///< a whole number
  toggle,        ///< true or false
  bytes,         ///< a size with a unit
  memory,        ///< a size, or a percentage of the machine's memory; at most all of it
  level,         ///< a LogLevel
  mode,          ///< permissions of a file, as octal text
  fabric,        ///< fabric addresses separated by spaces, or none
  host_port,     ///< an IPv4 or IPv6 address with a UDP port, or none
  place,         ///< a Place
  on_log_error,  ///< an OnLogError
  durability,    ///< a Durability
};

enum class Shape : std::uint8_t { any, power_of_two, multiple_of_64 };

/// The values that a setting accepts.
struct Rule {
  Kind kind = Kind::count;
  std::uint64_t min = 0;
  std::uint64_t max = 0;
  Shape shape = Shape::any;
};

/// A value as its source has it. Variables and flags are text; a file has types.
struct Text {
  std::string text;
};
/// A type in a file that no setting accepts.
struct Other {
  std::string_view what;  ///< "a date"
};
using Raw = std::variant<Text, std::string, std::int64_t, bool, Other>;

/// Why a value is rejected.
struct Wrong {
  std::string what;  ///< completes the sentence "node.cores ...": "cannot be 65"
  std::string hint;  ///< how to correct it
};

/// Parses one value. `machine_bytes` is the memory that the node may use, 0 if unknown.
[[nodiscard]] std::expected<Value, Wrong> parse_value(const Rule& rule, const Raw& raw,
                                                      std::uint64_t machine_bytes);

/// The addresses of a value of kind `fabric`.
[[nodiscard]] std::vector<std::string_view> fabric_addresses(std::string_view text);

/// A peer's address, and the file of the secret for it; empty: that of the process.
struct PeerValue {
  std::string address;
  std::string secret_file;
};
/// Parses "ADDRESS FILE", or an address alone.
[[nodiscard]] std::expected<PeerValue, Wrong> parse_peer(const Raw& raw);
/// Its text form.
[[nodiscard]] std::string to_text(const PeerValue& peer);

/// The accepted values, in words: "a whole number from 1 to 64".
[[nodiscard]] std::string allowed(const Rule& rule);

/// The value as TOML; parsing it gives the same value again.
[[nodiscard]] std::string to_toml(const Rule& rule, const Value& value);

}  // namespace espalier::node
