// SPDX-License-Identifier: Apache-2.0
// One value of a setting: read from what a file, a variable or a flag says, held against the
// setting's limits, and written again.
//
// Everything that comes in is hostile; every text that goes out can be shown on a terminal.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace espalier::node {

/// What a setting holds: bytes, counts and levels are numbers.
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
  fabric,        ///< addresses of the fabric with spaces between, or none
  host_port,     ///< an address of IPv4 or IPv6 with a port of UDP, or none
  place,         ///< a Place
  on_log_error,  ///< an OnLogError
  durability,    ///< a Durability
};

enum class Shape : std::uint8_t { any, power_of_two, multiple_of_64 };

/// What values a setting takes.
struct Rule {
  Kind kind = Kind::count;
  std::uint64_t min = 0;
  std::uint64_t max = 0;
  Shape shape = Shape::any;
};

/// A value as its source has it. Variables and flags are text whatever they mean; a file has types.
struct Text {
  std::string text;
};
/// Something of a file that no setting takes.
struct Other {
  std::string_view what;  ///< "a date"
};
using Raw = std::variant<Text, std::string, std::int64_t, bool, Other>;

/// Why a value is refused.
struct Wrong {
  std::string what;  ///< the end of the sentence "node.cores ...": "cannot be 65"
  std::string hint;  ///< what to do about it
};

/// Reads one value. `machine_bytes` is the memory that the node may use, 0 if it is not known.
[[nodiscard]] std::expected<Value, Wrong> parse_value(const Rule& rule, const Raw& raw,
                                                      std::uint64_t machine_bytes);

/// The addresses of a value of kind `fabric`.
[[nodiscard]] std::vector<std::string_view> fabric_addresses(std::string_view text);

/// Where a peer is, and by which file one comes there; empty: that of the process.
struct PeerValue {
  std::string address;
  std::string secret_file;
};
/// Reads "ADDRESS FILE", or an address alone.
[[nodiscard]] std::expected<PeerValue, Wrong> parse_peer(const Raw& raw);
/// The same as text.
[[nodiscard]] std::string to_text(const PeerValue& peer);

/// What values the rule takes, in words: "a whole number from 1 to 64".
[[nodiscard]] std::string allowed(const Rule& rule);

/// The value as TOML has it; a file with it gives the same value again.
[[nodiscard]] std::string to_toml(const Rule& rule, const Value& value);

}  // namespace espalier::node
