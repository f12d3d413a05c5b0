// SPDX-License-Identifier: Apache-2.0
#include "chain/membership/etcd_membership.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/number_text.hpp"
#include "chain/membership/base64.hpp"

namespace espalier::chain {
namespace {

using nlohmann::json;

constexpr std::size_t kEndpointsMax = 16;

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
  if (!text.starts_with(kEtcdScheme)) return wrong();
  text.remove_prefix(kEtcdScheme.size());
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

std::expected<EtcdAccess, std::string> etcd_access_of_process(const EtcdPlace& place) {
  EtcdAccess access;
  if (const char* const path = std::getenv(kEtcdFileVariable); path != nullptr && *path != '\0') {
    auto read = read_etcd_access(path);
    if (!read) return std::unexpected(std::move(read.error()));
    access = std::move(*read);
  }
  if (shows_password(access, place.endpoints)) {
    return std::unexpected(
        "a password would go to etcd where others can read it: 'ca PATH' in the file that " +
        std::string(kEtcdFileVariable) + " names has it go by TLS");
  }
  return access;
}

std::expected<std::optional<EtcdView>, std::string> read_etcd_answer(std::string_view answer) {
  const json found = json::parse(answer, nullptr, false);
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
  if (!view) return std::unexpected("it has no chain: " + view.error());
  return EtcdView{std::move(*view), *revision};
}

std::expected<std::optional<EtcdView>, EtcdError> EtcdMembership::find(std::uint64_t until_ns) {
  const json request = {{"key", in_base64(key_)}};
  const auto answer = gateway_.post("/v3/kv/range", request.dump(), until_ns);
  if (!answer) return std::unexpected(answer.error());
  auto found = read_etcd_answer(*answer);
  if (found) return std::move(*found);
  return std::unexpected(EtcdError{EtcdFault::strange, "the key '" + key_ + "': " + found.error()});
}

std::expected<std::optional<View>, EtcdError> EtcdMembership::read_until(std::uint64_t until_ns) {
  auto found = find(until_ns);
  if (!found) return std::unexpected(std::move(found.error()));
  if (!*found) return std::nullopt;
  return std::move((*found)->view);
}

std::expected<std::optional<View>, std::string> EtcdMembership::read() {
  auto read = read_until(EtcdGateway::kNoEnd);
  if (!read) return std::unexpected(std::move(read.error().words));
  return std::move(*read);
}

// The view of the previous epoch must still be at the revision that was read.
std::expected<bool, std::string> EtcdMembership::replace(const View& next) {
  const auto found = find(EtcdGateway::kNoEnd);
  if (!found) return std::unexpected(found.error().words);
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
  if (!answer) return std::unexpected(answer.error().words);
  const json done = json::parse(*answer, nullptr, false);
  if (!done.is_object() || !done.contains("header")) {
    return std::unexpected("what answers there is no etcd");
  }
  const auto succeeded = done.find("succeeded");
  return succeeded != done.end() && succeeded->is_boolean() && succeeded->get<bool>();
}

}  // namespace espalier::chain
