// SPDX-License-Identifier: Apache-2.0
#include "node/config_value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <optional>
#include <span>
#include <utility>

#include "base/byte_size.hpp"
#include "fabric/address.hpp"
#include "node/config_text.hpp"
#include "wire/datagram.hpp"

namespace espalier::node {
namespace {

constexpr std::array<std::string_view, 5> kLevels{"trace", "debug", "info", "warn", "error"};
constexpr std::array<std::string_view, 2> kPlaces{"host", "device"};
constexpr std::array<std::string_view, 2> kOnLogError{"serve", "exit"};
constexpr std::array<std::string_view, 3> kDurabilities{"none", "async", "sync"};

using Parsed = std::expected<Value, Wrong>;

bool is_name(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

/// The text of a source without types, or a string of a file; else null.
const std::string* text_of(const Raw& raw) {
  if (const auto* untyped = std::get_if<Text>(&raw)) return &untyped->text;
  return std::get_if<std::string>(&raw);
}

std::string shown(const Raw& raw) {
  if (const auto* untyped = std::get_if<Text>(&raw)) return in_short_quotes(untyped->text);
  if (const auto* text = std::get_if<std::string>(&raw))
    return "the text " + in_short_quotes(*text);
  if (const auto* number = std::get_if<std::int64_t>(&raw)) return std::to_string(*number);
  if (const auto* toggle = std::get_if<bool>(&raw)) return *toggle ? "true" : "false";
  return std::string(std::get<Other>(raw).what);
}

std::unexpected<Wrong> refused(const Rule& rule, const Raw& raw, std::string_view addition = "") {
  return std::unexpected(
      Wrong{"cannot be " + shown(raw), fmt::format("give {}{}", allowed(rule), addition)});
}

bool fits(const Rule& rule, std::uint64_t number) {
  if (number < rule.min || number > rule.max) return false;
  return rule.shape == Shape::any ||
         (rule.shape == Shape::power_of_two ? std::has_single_bit(number) : number % 64 == 0);
}

Parsed parse_text(const Rule& rule, const Raw& raw) {
  const std::string* text = text_of(raw);
  if (text == nullptr) return refused(rule, raw);
  if (text->size() > rule.max) {
    return std::unexpected(
        Wrong{fmt::format("cannot be {}, which has {} bytes", in_short_quotes(*text), text->size()),
              "give " + allowed(rule)});
  }
  const bool good = rule.kind == Kind::name ? is_name(*text) : is_plain(*text);
  if (text->size() < rule.min || !good) return refused(rule, raw);
  return *text;
}

// Parses each address now, so that a mistake is reported for this setting.
Parsed parse_fabric(const Rule& rule, const Raw& raw) {
  const auto text = parse_text({Kind::path, 0, rule.max}, raw);
  if (!text) return refused(rule, raw);
  if (std::get<std::string>(*text) == "none") return std::string();
  for (const std::string_view each : fabric_addresses(std::get<std::string>(*text))) {
    const auto address = fabric::parse(each);
    if (address) continue;
    return std::unexpected(Wrong{
        fmt::format("cannot have {} in it", in_short_quotes(each)),
        fmt::format("give {}; {}", allowed(rule),
                    fabric::explain(static_cast<fabric::AddressFault>(address.error().detail)))});
  }
  return text;
}

Parsed parse_host_port(const Rule& rule, const Raw& raw) {
  const auto text = parse_text({Kind::path, 0, rule.max}, raw);
  if (!text) return refused(rule, raw);
  if (std::get<std::string>(*text) == "none" || std::get<std::string>(*text).empty()) {
    return std::string();
  }
  const auto at = fabric::parse_host_port(std::get<std::string>(*text), wire::kDatagramPort);
  if (!at) {
    const auto fault = static_cast<fabric::AddressFault>(at.error().detail);
    return refused(rule, raw, fmt::format("; {}", fabric::explain(fault)));
  }
  return text;
}

Parsed parse_count(const Rule& rule, const Raw& raw) {
  std::uint64_t number = 0;
  if (const auto* typed = std::get_if<std::int64_t>(&raw)) {
    if (*typed < 0) return refused(rule, raw);
    number = static_cast<std::uint64_t>(*typed);
  } else if (const auto* untyped = std::get_if<Text>(&raw)) {
    const char* const end = untyped->text.data() + untyped->text.size();
    const auto [stop, status] = std::from_chars(untyped->text.data(), end, number);
    if (status != std::errc{} || stop != end) return refused(rule, raw);
  } else {
    return refused(rule, raw, std::holds_alternative<std::string>(raw) ? ", without quotes" : "");
  }
  if (!fits(rule, number)) return refused(rule, raw);
  return number;
}

Parsed parse_toggle(const Rule& rule, const Raw& raw) {
  if (const auto* typed = std::get_if<bool>(&raw)) return *typed;
  const auto* untyped = std::get_if<Text>(&raw);
  if (untyped == nullptr) {
    return refused(rule, raw, std::holds_alternative<std::string>(raw) ? ", without quotes" : "");
  }
  for (const std::string_view word : {"true", "yes", "on", "1"}) {
    if (untyped->text == word) return true;
  }
  for (const std::string_view word : {"false", "no", "off", "0"}) {
    if (untyped->text == word) return false;
  }
  return refused(rule, raw);
}

/// One of several words, as its index.
Parsed parse_word(const Rule& rule, std::span<const std::string_view> words, const Raw& raw) {
  const std::string* text = text_of(raw);
  const auto found = text == nullptr ? words.end() : std::ranges::find(words, *text);
  if (found == words.end()) return refused(rule, raw);
  return static_cast<std::uint64_t>(found - words.begin());
}

/// Always text: 600 without quotes would be a different number.
Parsed parse_mode(const Rule& rule, const Raw& raw) {
  const std::string* text = text_of(raw);
  if (text == nullptr) return refused(rule, raw, ", in quotes");
  constexpr int kOctal = 8;
  std::uint64_t mode = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, status] = std::from_chars(text->data(), end, mode, kOctal);
  const bool digits = status == std::errc{} && stop == end;
  if (!digits || text->size() < 3 || text->size() > 4 || !fits(rule, mode)) {
    return refused(rule, raw);
  }
  return mode;
}

/// The bytes of "75%", if valid; nothing if the text does not end in a percent sign.
std::optional<std::expected<std::uint64_t, Wrong>> parse_share(const Rule& rule, const Raw& raw,
                                                               std::uint64_t machine_bytes) {
  const std::string* text = text_of(raw);
  if (text == nullptr || !text->ends_with('%')) return std::nullopt;
  std::uint64_t percent = 0;
  const char* const end = text->data() + text->size() - 1;
  const auto [stop, status] = std::from_chars(text->data(), end, percent);
  if (status != std::errc{} || stop != end || percent < 1 || percent > 100) {
    return refused(rule, raw);
  }
  if (machine_bytes == 0) {
    return std::unexpected(
        Wrong{fmt::format("cannot be {}: it is not known how much memory this machine has",
                          in_short_quotes(*text)),
              "give a size such as 8GiB"});
  }
  return machine_bytes / 100 * percent + machine_bytes % 100 * percent / 100;
}

Parsed parse_size(const Rule& rule, const Raw& raw, std::uint64_t machine_bytes) {
  std::uint64_t bytes = 0;
  if (const auto* typed = std::get_if<std::int64_t>(&raw)) {
    if (*typed < 0) return refused(rule, raw);
    bytes = static_cast<std::uint64_t>(*typed);
  } else if (const std::string* text = text_of(raw)) {
    const auto share =
        rule.kind == Kind::memory ? parse_share(rule, raw, machine_bytes) : std::nullopt;
    if (share && !*share) return std::unexpected(share->error());
    const auto size = share ? **share : base::parse_bytes(*text);
    if (!size) return refused(rule, raw);
    bytes = *size;
  } else {
    return refused(rule, raw);
  }
  if (!fits(rule, bytes)) return refused(rule, raw);
  if (rule.kind == Kind::memory && machine_bytes != 0 && bytes > machine_bytes) {
    return refused(rule, raw, fmt::format(" ({})", base::exact_bytes(machine_bytes)));
  }
  return bytes;
}

std::string toml_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

// An optional path may be the word "none"; a file of this name is ./none.
std::expected<Value, Wrong> parse_path(const Rule& rule, const Raw& raw) {
  auto text = parse_text(rule, raw);
  if (text && rule.min == 0 && std::get<std::string>(*text) == "none") return std::string();
  return text;
}

}  // namespace

std::expected<PeerValue, Wrong> parse_peer(const Raw& raw) {
  constexpr std::uint64_t kLongest = 4096;
  const std::string hint =
      "give an address of the fabric, such as roce://192.0.2.1/1, and behind a space the file with "
      "the name and secret by which this node comes there";
  const std::string* const text = text_of(raw);
  if (text == nullptr) return std::unexpected(Wrong{"cannot be " + shown(raw), hint});
  const std::size_t space = std::min(text->find(' '), text->size());
  const std::size_t file = std::min(text->find_first_not_of(' ', space), text->size());
  PeerValue peer{text->substr(0, space), text->substr(file)};
  const auto address = parse_fabric({Kind::fabric, 0, kLongest}, Text{peer.address});
  if (!address) return std::unexpected(Wrong{address.error().what, hint});
  if (fabric_addresses(std::get<std::string>(*address)).size() != 1) {
    return std::unexpected(Wrong{"cannot be " + shown(raw), hint});
  }
  const auto path = parse_path({Kind::path, 0, kLongest}, Text{peer.secret_file});
  if (!path) return std::unexpected(Wrong{path.error().what, hint});
  peer.secret_file = std::get<std::string>(*path);
  return peer;
}

std::string to_text(const PeerValue& peer) {
  return peer.secret_file.empty() ? peer.address : peer.address + ' ' + peer.secret_file;
}

std::vector<std::string_view> fabric_addresses(std::string_view text) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end != 0) result.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

std::expected<Value, Wrong> parse_value(const Rule& rule, const Raw& raw,
                                        std::uint64_t machine_bytes) {
  switch (rule.kind) {
    case Kind::path: return parse_path(rule, raw);
    case Kind::name: return parse_text(rule, raw);
    case Kind::count: return parse_count(rule, raw);
    case Kind::toggle: return parse_toggle(rule, raw);
    case Kind::bytes:
    case Kind::memory: return parse_size(rule, raw, machine_bytes);
    case Kind::level: return parse_word(rule, kLevels, raw);
    case Kind::place: return parse_word(rule, kPlaces, raw);
    case Kind::on_log_error: return parse_word(rule, kOnLogError, raw);
    case Kind::durability: return parse_word(rule, kDurabilities, raw);
    case Kind::mode: return parse_mode(rule, raw);
    case Kind::fabric: return parse_fabric(rule, raw);
    case Kind::host_port: return parse_host_port(rule, raw);
  }
  std::unreachable();
}

std::string allowed(const Rule& rule) {
  const std::string from = base::exact_bytes(rule.min);
  const std::string to = base::exact_bytes(rule.max);
  switch (rule.kind) {
    case Kind::path:
      if (rule.min == 0) {
        return fmt::format("a path of up to {} bytes, UTF-8 without control characters, or none",
                           rule.max);
      }
      return fmt::format("a path of {} to {} bytes, UTF-8 without control characters", rule.min,
                         rule.max);
    case Kind::name:
      return fmt::format("{} to {} letters, digits, '_', '-' and '.'", rule.min, rule.max);
    case Kind::count: return fmt::format("a whole number from {} to {}", rule.min, rule.max);
    case Kind::toggle: return "true or false";
    case Kind::bytes:
      switch (rule.shape) {
        case Shape::any: return fmt::format("a size from {} to {}", from, to);
        case Shape::power_of_two: return fmt::format("a power of two from {} to {}", from, to);
        case Shape::multiple_of_64: return fmt::format("a multiple of 64 from {} to {}", from, to);
      }
      std::unreachable();
    case Kind::memory:
      return fmt::format("a size from {} to the machine's memory, or a percentage of that", from);
    case Kind::level: return fmt::format("one of {}", fmt::join(kLevels, ", "));
    case Kind::place: return fmt::format("one of {}", fmt::join(kPlaces, ", "));
    case Kind::on_log_error: return fmt::format("one of {}", fmt::join(kOnLogError, ", "));
    case Kind::durability: return fmt::format("one of {}", fmt::join(kDurabilities, ", "));
    case Kind::mode:
      return fmt::format("octal permissions from {:04o} to {:04o}", rule.min, rule.max);
    case Kind::fabric: return "addresses of the fabric with spaces between, or none";
    case Kind::host_port:
      return fmt::format("HOST or HOST:PORT, the port being {} unless given, or none",
                         wire::kDatagramPort);
  }
  std::unreachable();
}

std::string to_toml(const Rule& rule, const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return toml_string(*text);
  if (const auto* toggle = std::get_if<bool>(&value)) return *toggle ? "true" : "false";
  const std::uint64_t number = std::get<std::uint64_t>(value);
  if (rule.kind == Kind::count) return std::to_string(number);
  if (rule.kind == Kind::level) return toml_string(kLevels.at(number));
  if (rule.kind == Kind::place) return toml_string(kPlaces.at(number));
  if (rule.kind == Kind::on_log_error) return toml_string(kOnLogError.at(number));
  if (rule.kind == Kind::durability) return toml_string(kDurabilities.at(number));
  if (rule.kind == Kind::mode) return toml_string(fmt::format("{:04o}", number));
  return toml_string(base::exact_bytes(number));
}

}  // namespace espalier::node
