// SPDX-License-Identifier: Apache-2.0
#include "chain/etcd_gateway.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

namespace espalier::chain {
namespace {

using nlohmann::json;

constexpr std::size_t kAnswerBytesMax = std::size_t{256} << 10;

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

void append_header(std::unique_ptr<curl_slist, EndList>& headers, const std::string& line) {
  curl_slist* const longer = curl_slist_append(headers.get(), line.c_str());
  if (longer == nullptr) return headers.reset();
  static_cast<void>(headers.release());
  headers.reset(longer);
}

void set_tls(CURL* request, const EtcdAccess& access) {
  curl_easy_setopt(request, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  curl_easy_setopt(request, CURLOPT_CAINFO, access.ca.c_str());
  curl_easy_setopt(request, CURLOPT_CAPATH, nullptr);  // no other CA
  if (access.certificate.empty()) return;
  curl_easy_setopt(request, CURLOPT_SSLCERT, access.certificate.c_str());
  curl_easy_setopt(request, CURLOPT_SSLKEY, access.key.c_str());
}

/// Describes a failure status, with etcd's text in printable characters.
std::string what_it_says(long status, const std::string& answer) {
  std::string words = "with status " + std::to_string(status);
  const json said = json::parse(answer, nullptr, false);
  const bool has_message = said.is_object() && said.contains("message");
  constexpr std::size_t kWordsMax = 200;
  std::string why = has_message && said["message"].is_string()
                        ? said["message"].get<std::string>()
                        : answer.substr(0, answer.find('\n'));
  if (why.size() > kWordsMax) why.resize(kWordsMax);
  const auto is_no_text = [](char c) { return c < ' ' || c > '~'; };
  std::ranges::replace_if(why, is_no_text, '?');
  if (!why.empty()) words += ": " + why;
  return words;
}

}  // namespace

std::expected<std::string, EtcdGateway::Failure> EtcdGateway::post_to(
    const std::string& endpoint, std::string_view path, const std::string& body) const {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, EndEasy> easy(ready == CURLE_OK ? curl_easy_init() : nullptr);
  std::unique_ptr<curl_slist, EndList> headers;
  append_header(headers, "Content-Type: application/json");
  if (!token_.empty()) append_header(headers, "Authorization: " + token_);
  if (!easy || !headers) return std::unexpected(Failure{"libcurl does not begin"});
  const std::string scheme = access_.by_tls() ? "https" : "http";
  const std::string url = scheme + "://" + endpoint + std::string(path);
  std::string answer;
  CURL* const request = easy.get();
  curl_easy_setopt(request, CURLOPT_URL, url.c_str());
  curl_easy_setopt(request, CURLOPT_PROTOCOLS_STR, scheme.c_str());
  curl_easy_setopt(request, CURLOPT_PROXY, "");
  curl_easy_setopt(request, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(request, CURLOPT_TIMEOUT_MS, kRequestMs);
  curl_easy_setopt(request, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(request, CURLOPT_POSTFIELDS, body.c_str());
  curl_easy_setopt(request, CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
  curl_easy_setopt(request, CURLOPT_WRITEFUNCTION, espalier_take_answer);
  curl_easy_setopt(request, CURLOPT_WRITEDATA, &answer);
  if (access_.by_tls()) set_tls(request, access_);
  const CURLcode done = curl_easy_perform(request);
  if (done != CURLE_OK) return std::unexpected(Failure{curl_easy_strerror(done)});
  long status = 0;
  curl_easy_getinfo(request, CURLINFO_RESPONSE_CODE, &status);
  if (status == 200) return answer;
  return std::unexpected(Failure{"it answers " + what_it_says(status, answer), status});
}

std::expected<void, EtcdGateway::Failure> EtcdGateway::fetch_token(const std::string& endpoint) {
  token_.clear();
  const json asked = {{"name", access_.user}, {"password", access_.password}};
  const auto answer = post_to(endpoint, "/v3/auth/authenticate",
                              asked.dump(-1, ' ', false, json::error_handler_t::replace));
  if (!answer) {
    const bool refused = answer.error().status != 0;
    return std::unexpected(refused ? Failure{"it does not let user '" + access_.user + "' in (" +
                                                 answer.error().words + ")",
                                             answer.error().status}
                                   : answer.error());
  }
  const json given = json::parse(*answer, nullptr, false);
  const auto at = given.is_object() ? given.find("token") : given.end();
  if (at == given.end() || !at->is_string()) return std::unexpected(Failure{"it gives no token"});
  token_ = at->get<std::string>();
  // The token becomes a line of a header.
  if (token_.find_first_of("\r\n") == std::string::npos) return {};
  token_.clear();
  return std::unexpected(Failure{"its token is none"});
}

// etcd refuses an expired token with one of several codes.
std::expected<std::string, EtcdGateway::Failure> EtcdGateway::ask(const std::string& endpoint,
                                                                  std::string_view path,
                                                                  const std::string& body) {
  if (access_.user.empty()) return post_to(endpoint, path, body);
  if (!token_.empty()) {
    auto answer = post_to(endpoint, path, body);
    if (answer || answer.error().status == 0) return answer;
  }
  if (auto fetched = fetch_token(endpoint); !fetched) return std::unexpected(fetched.error());
  return post_to(endpoint, path, body);
}

std::expected<std::string, std::string> EtcdGateway::post(std::string_view path,
                                                          const std::string& body) {
  std::string why;
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    const std::size_t at = (first_ + i) % endpoints_.size();
    auto answer = ask(endpoints_[at], path, body);
    if (answer) {
      first_ = at;
      return std::move(*answer);
    }
    why = "etcd at " + endpoints_[at] + ": " + answer.error().words;
  }
  return std::unexpected(std::move(why));
}

}  // namespace espalier::chain
