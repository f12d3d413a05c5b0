// SPDX-License-Identifier: Apache-2.0
#include "chain/etcd_membership.hpp"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/number_text.hpp"

namespace espalier::chain {
namespace {

using nlohmann::json;

constexpr std::size_t kEndpointsMax = 16;
constexpr std::string_view kScheme = "etcd://";
constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string in_base64(std::string_view bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t at) -> unsigned {
      return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0;
    };
    const unsigned word = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    for (unsigned digit = 0; digit < 4; ++digit) {
      const bool is_there = i + digit <= bytes.size();
      text += is_there ? kDigits[word >> (18 - 6 * digit) & 63] : '=';
    }
  }
  return text;
}

/// Nothing: not valid base64.
std::optional<std::string> of_base64(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  unsigned word = 0;
  unsigned bits = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    word = (word << 6 | static_cast<unsigned>(digit)) & 0xFFFF;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(word >> bits & 0xFF);
  }
  return bytes;
}

/// The value, if it is text.
const std::string* text_at(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto at = object.find(name);
  return at != object.end() ? at->get_ptr<const json::string_t*>() : nullptr;
}

bool is_key_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '/' ||
         c == '.';
}

bool is_endpoint(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const bool host = std::ranges::all_of(text.substr(0, colon), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == ':' ||
           c == '[' || c == ']';
  });
  return host && base::parse_digits<std::uint16_t>(text.substr(colon + 1)).has_value();
}

}  // namespace

std::expected<EtcdPlace, std::string> parse_etcd_place(std::string_view text) {
  const std::string quoted = "'" + std::string(text) + "'";
  const auto wrong = [&] {
    return std::unexpected(quoted + " is no place of a chain: etcd://HOST:PORT,HOST:PORT/KEY is");
  };
  if (!text.starts_with(kScheme)) return wrong();
  text.remove_prefix(kScheme.size());
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return wrong();
  EtcdPlace place;
  place.key = text.substr(slash + 1);
  const bool good_key = !place.key.empty() && place.key.size() <= 256 &&
                        std::ranges::all_of(place.key, is_key_letter);
  if (!good_key) return wrong();
  for (std::string_view rest = text.substr(0, slash); !rest.empty();) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    place.endpoints.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const bool good = !place.endpoints.empty() && place.endpoints.size() <= kEndpointsMax &&
                    std::ranges::all_of(place.endpoints, is_endpoint);
  if (!good) return wrong();
  return place;
}

std::expected<std::optional<EtcdMembership::Found>, std::string> EtcdMembership::find() {
  const json request = {{"key", in_base64(key_)}};
  const auto answer = gateway_.post("/v3/kv/range", request.dump());
  if (!answer) return std::unexpected(answer.error());
  const json found = json::parse(*answer, nullptr, false);
  if (!found.is_object() || !found.contains("header")) {
    return std::unexpected("what answers there is no etcd");
  }
  const auto pairs = found.find("kvs");
  if (pairs == found.end()) return std::nullopt;
  const bool is_one = pairs->is_array() && pairs->size() == 1;
  const std::string* const value = is_one ? text_at((*pairs)[0], "value") : nullptr;
  const std::string* const revision = is_one ? text_at((*pairs)[0], "mod_revision") : nullptr;
  const auto text = value != nullptr ? of_base64(*value) : std::nullopt;
  if (!text || revision == nullptr) return std::unexpected("etcd answers what no etcd does");
  auto view = parse_view(*text);
  if (!view) return std::unexpected("the key '" + key_ + "' has no chain: " + view.error());
  return Found{std::move(*view), *revision};
}

std::expected<std::optional<View>, std::string> EtcdMembership::read() {
  auto found = find();
  if (!found) return std::unexpected(found.error());
  if (!*found) return std::nullopt;
  return std::move((*found)->view);
}

// The view of the previous epoch must still be at the revision that was read.
std::expected<bool, std::string> EtcdMembership::replace(const View& next) {
  const auto found = find();
  if (!found) return std::unexpected(found.error());
  const bool goes_on =
      *found ? (*found)->view.chain == next.chain && (*found)->view.epoch + 1 == next.epoch
             : next.epoch == 1;
  if (!goes_on) return false;
  const std::string key = in_base64(key_);
  json compare = {{"key", key}, {"result", "EQUAL"}};
  if (*found) {
    compare["target"] = "MOD";
    compare["mod_revision"] = (*found)->revision;
  } else {
    compare["target"] = "CREATE";
    compare["create_revision"] = "0";
  }
  const json put = {{"request_put", {{"key", key}, {"value", in_base64(print(next))}}}};
  const json request = {{"compare", json::array({compare})}, {"success", json::array({put})}};
  const auto answer = gateway_.post("/v3/kv/txn", request.dump());
  if (!answer) return std::unexpected(answer.error());
  const json done = json::parse(*answer, nullptr, false);
  if (!done.is_object() || !done.contains("header")) {
    return std::unexpected("what answers there is no etcd");
  }
  const auto succeeded = done.find("succeeded");
  return succeeded != done.end() && succeeded->is_boolean() && succeeded->get<bool>();
}

}  // namespace espalier::chain
