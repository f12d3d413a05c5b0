// SPDX-License-Identifier: Apache-2.0
#include "chain/etcd_membership.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/number_text.hpp"

namespace espalier::chain {
namespace {

using nlohmann::json;

constexpr std::size_t kAnswerBytesMax = std::size_t{256} << 10;
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

/// Nothing: it is no such text.
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

/// What stands there, if it is text.
const std::string* text_at(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto at = object.find(name);
  return at != object.end() ? at->get_ptr<const json::string_t*>() : nullptr;
}

extern "C" std::size_t espalier_take_answer(char* bytes, std::size_t size, std::size_t count,
                                            void* into) {
  auto& answer = *static_cast<std::string*>(into);
  if (answer.size() + size * count > kAnswerBytesMax) return 0;
  answer.append(bytes, size * count);
  return size * count;
}

struct EndEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct EndList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

/// One request to one endpoint. Errors: why there is no answer.
std::expected<std::string, std::string> post_to(const std::string& url, const std::string& body) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, EndEasy> easy(ready == CURLE_OK ? curl_easy_init() : nullptr);
  const std::unique_ptr<curl_slist, EndList> headers(
      curl_slist_append(nullptr, "Content-Type: application/json"));
  if (!easy || !headers) return std::unexpected("libcurl does not begin");
  std::string answer;
  CURL* const request = easy.get();
  curl_easy_setopt(request, CURLOPT_URL, url.c_str());
  curl_easy_setopt(request, CURLOPT_PROTOCOLS_STR, "http");
  curl_easy_setopt(request, CURLOPT_PROXY, "");
  curl_easy_setopt(request, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(request, CURLOPT_TIMEOUT_MS, EtcdMembership::kRequestMs);
  curl_easy_setopt(request, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(request, CURLOPT_POSTFIELDS, body.c_str());
  curl_easy_setopt(request, CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
  curl_easy_setopt(request, CURLOPT_WRITEFUNCTION, espalier_take_answer);
  curl_easy_setopt(request, CURLOPT_WRITEDATA, &answer);
  const CURLcode done = curl_easy_perform(request);
  if (done != CURLE_OK) return std::unexpected(curl_easy_strerror(done));
  long status = 0;
  curl_easy_getinfo(request, CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) return std::unexpected("it answers with status " + std::to_string(status));
  return answer;
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

std::expected<std::string, std::string> EtcdMembership::post(std::string_view path,
                                                             const std::string& body) {
  std::string why;
  for (std::size_t i = 0; i < place_.endpoints.size(); ++i) {
    const std::size_t at = (first_ + i) % place_.endpoints.size();
    auto answer = post_to("http://" + place_.endpoints[at] + std::string(path), body);
    if (answer) {
      first_ = at;
      return answer;
    }
    why = "etcd at " + place_.endpoints[at] + ": " + answer.error();
  }
  return std::unexpected(std::move(why));
}

std::expected<std::optional<EtcdMembership::Found>, std::string> EtcdMembership::find() {
  const json request = {{"key", in_base64(place_.key)}};
  const auto answer = post("/v3/kv/range", request.dump());
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
  if (!view) return std::unexpected("the key '" + place_.key + "' has no chain: " + view.error());
  return Found{std::move(*view), *revision};
}

std::expected<std::optional<View>, std::string> EtcdMembership::read() {
  auto found = find();
  if (!found) return std::unexpected(found.error());
  if (!*found) return std::nullopt;
  return std::move((*found)->view);
}

// The view of the epoch before is there at a revision, at which it must be still.
std::expected<bool, std::string> EtcdMembership::replace(const View& next) {
  const auto found = find();
  if (!found) return std::unexpected(found.error());
  const bool goes_on =
      *found ? (*found)->view.chain == next.chain && (*found)->view.epoch + 1 == next.epoch
             : next.epoch == 1;
  if (!goes_on) return false;
  const std::string key = in_base64(place_.key);
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
  const auto answer = post("/v3/kv/txn", request.dump());
  if (!answer) return std::unexpected(answer.error());
  const json done = json::parse(*answer, nullptr, false);
  if (!done.is_object() || !done.contains("header")) {
    return std::unexpected("what answers there is no etcd");
  }
  const auto succeeded = done.find("succeeded");
  return succeeded != done.end() && succeeded->is_boolean() && succeeded->get<bool>();
}

}  // namespace espalier::chain
