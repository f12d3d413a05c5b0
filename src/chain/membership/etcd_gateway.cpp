// SPDX-License-Identifier: Apache-2.0
#include "chain/membership/etcd_gateway.hpp"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "chain/membership/curl_library.hpp"

namespace espalier::chain {
namespace {

using nlohmann::json;

constexpr std::size_t kAnswerBytesMax = std::size_t{256} << 10;
constexpr std::uint64_t kMillisecondNs = 1'000'000;

struct Received {
  std::string bytes;
  bool lacks_memory = false;
};

/// No exception may pass through libcurl, which is C. Fewer bytes than there are end the transfer.
extern "C" std::size_t espalier_take_answer(char* bytes, std::size_t size, std::size_t count,
                                            void* into) noexcept {
  auto& received = *static_cast<Received*>(into);
  if (received.bytes.size() + size * count > kAnswerBytesMax) return 0;
  try {
    received.bytes.append(bytes, size * count);
  } catch (...) {
    received.lacks_memory = true;
    return 0;
  }
  return size * count;
}

struct EndEasy {
  const CurlFunctions* curl;
  void operator()(CURL* easy) const { curl->easy_cleanup(easy); }
};
struct EndList {
  const CurlFunctions* curl;
  void operator()(curl_slist* list) const { curl->list_free(list); }
};

void append_header(const CurlFunctions& curl, std::unique_ptr<curl_slist, EndList>& headers,
                   const std::string& line) {
  curl_slist* const longer = curl.list_append(headers.get(), line.c_str());
  if (longer == nullptr) return headers.reset();
  static_cast<void>(headers.release());
  headers.reset(longer);
}

void set_tls(const CurlFunctions& curl, CURL* request, const EtcdAccess& access) {
  curl.easy_setopt(request, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  curl.easy_setopt(request, CURLOPT_CAINFO, access.ca.c_str());
  curl.easy_setopt(request, CURLOPT_CAPATH, nullptr);  // no other CA
  if (access.certificate.empty()) return;
  curl.easy_setopt(request, CURLOPT_SSLCERT, access.certificate.c_str());
  curl.easy_setopt(request, CURLOPT_SSLKEY, access.key.c_str());
}

/// Milliseconds that a request may take, of those until then; 0: none is left.
long request_ms(std::uint64_t until_ns) {
  const std::uint64_t now_ns = base::monotonic_ns();
  if (now_ns >= until_ns) return 0;
  const std::uint64_t left_ms = (until_ns - now_ns) / kMillisecondNs + 1;
  return static_cast<long>(std::min<std::uint64_t>(EtcdGateway::kRequestMs, left_ms));
}

/// Whether asking again does not help: the files of TLS are wrong, or not for this server.
EtcdFault fault_of(CURLcode done) {
  switch (done) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE: return EtcdFault::refused;
    case CURLE_WRITE_ERROR:  // the answer is longer than any of etcd's to such a request
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL: return EtcdFault::strange;
    default: return EtcdFault::unavailable;
  }
}

/// etcd's gateway makes these of the codes of gRPC: of bad credentials 400, 401 or 403; of an etcd
/// without a leader 503; of one that is too busy 429; of a request that it gave up 408.
EtcdFault fault_of(long status) {
  if (status == 400 || status == 401 || status == 403) return EtcdFault::refused;
  const bool may_pass = status == 408 || status == 429 || status >= 500;
  return may_pass ? EtcdFault::unavailable : EtcdFault::strange;
}

std::string json_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Whether a text has a secret in it, as it is or as JSON writes it.
bool shows(const std::string& text, const std::string& secret) {
  if (secret.empty()) return false;
  const std::string quoted = json_of(secret);
  return text.find(secret) != std::string::npos ||
         text.find(quoted.substr(1, quoted.size() - 2)) != std::string::npos;
}

/// What a request carries that no report may show; empty: nothing.
struct Secrets {
  const std::string& password;
  const std::string& token;
};

/// Describes a failure status, with etcd's text in printable characters. What answers may repeat
/// the request: where that has secrets, only the message of an error of etcd's is shown, and that
/// only if it has none of them.
std::string what_it_says(long status, const std::string& answer, const Secrets& secrets) {
  std::string words = "with status " + std::to_string(status);
  const json said = json::parse(answer, nullptr, false);
  const bool has_message = said.is_object() && said.contains("message");
  constexpr std::size_t kWordsMax = 200;
  std::string why;
  if (has_message && said["message"].is_string()) {
    why = said["message"].get<std::string>();
  } else if (secrets.password.empty()) {
    why = answer.substr(0, answer.find('\n'));
  }
  if (shows(why, secrets.password) || shows(why, secrets.token)) {
    return words + " and a text that repeats a secret";
  }
  if (why.size() > kWordsMax) why.resize(kWordsMax);
  const auto is_no_text = [](char c) { return c < ' ' || c > '~'; };
  std::ranges::replace_if(why, is_no_text, '?');
  if (!why.empty()) words += ": " + why;
  return words;
}

}  // namespace

std::expected<std::string, EtcdGateway::Failure> EtcdGateway::post_to(
    const std::string& endpoint, const Request& request) const {
  const CurlFunctions* const curl = curl_functions();
  if (curl == nullptr) {
    return std::unexpected(
        Failure{EtcdFault::no_library,
                std::string(kCurlLibrary) + " cannot be loaded; Debian's package libcurl4 has it"});
  }
  const long timeout_ms = request_ms(request.until_ns);
  if (timeout_ms == 0) return std::unexpected(Failure{EtcdFault::unavailable, "no time is left"});
  const std::unique_ptr<CURL, EndEasy> owned(curl->easy_init(), EndEasy{curl});
  std::unique_ptr<curl_slist, EndList> headers(nullptr, EndList{curl});
  append_header(*curl, headers, "Content-Type: application/json");
  if (headers && !token_.empty()) append_header(*curl, headers, "Authorization: " + token_);
  if (!owned || !headers) {
    return std::unexpected(Failure{EtcdFault::unavailable, "libcurl does not begin"});
  }
  const std::string scheme = access_.by_tls() ? "https" : "http";
  const std::string url = scheme + "://" + endpoint + std::string(request.path);
  Received received;
  CURL* const easy = owned.get();
  curl->easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, scheme.c_str());
  curl->easy_setopt(easy, CURLOPT_PROXY, "");
  curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl->easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms);
#if LIBCURL_VERSION_NUM >= 0x075700
  // Without it the end of the transfer waits for libcurl's thread that resolves a name, past the
  // deadline. A libcurl before 7.87 lacks the option, and waits.
  curl->easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
  curl->easy_setopt(easy, CURLOPT_HTTPHEADER, headers.get());
  curl->easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.c_str());
  curl->easy_setopt(easy, CURLOPT_POSTFIELDSIZE, static_cast<long>(request.body.size()));
  curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, espalier_take_answer);
  curl->easy_setopt(easy, CURLOPT_WRITEDATA, &received);
  if (access_.by_tls()) set_tls(*curl, easy, access_);
  const CURLcode done = curl->easy_perform(easy);
  if (received.lacks_memory) {
    return std::unexpected(Failure{EtcdFault::unavailable, "no memory is left for its answer"});
  }
  if (done != CURLE_OK) return std::unexpected(Failure{fault_of(done), curl->easy_strerror(done)});
  long status = 0;
  curl->easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  if (status == 200) return std::move(received.bytes);
  const std::string said = what_it_says(status, received.bytes, {access_.password, token_});
  return std::unexpected(Failure{fault_of(status), "it answers " + said, status});
}

std::expected<void, EtcdGateway::Failure> EtcdGateway::fetch_token(const std::string& endpoint,
                                                                   std::uint64_t until_ns) {
  token_.clear();
  const json asked = {{"name", access_.user}, {"password", access_.password}};
  const std::string body = json_of(asked);
  const auto answer = post_to(endpoint, {"/v3/auth/authenticate", body, until_ns});
  if (!answer) {
    Failure failure = answer.error();
    if (failure.status != 0) {
      failure.words = "it does not let user '" + access_.user + "' in (" + failure.words + ")";
    }
    return std::unexpected(std::move(failure));
  }
  const json given = json::parse(*answer, nullptr, false);
  const auto at = given.is_object() ? given.find("token") : given.end();
  if (at == given.end() || !at->is_string()) {
    return std::unexpected(Failure{EtcdFault::strange, "it gives no token"});
  }
  token_ = at->get<std::string>();
  // The token becomes a line of a header.
  if (token_.find_first_of("\r\n") == std::string::npos) return {};
  token_.clear();
  return std::unexpected(Failure{EtcdFault::strange, "its token is none"});
}

// etcd refuses an expired token with one of several codes.
std::expected<std::string, EtcdGateway::Failure> EtcdGateway::ask(const std::string& endpoint,
                                                                  const Request& request) {
  if (access_.user.empty()) return post_to(endpoint, request);
  if (!token_.empty()) {
    auto answer = post_to(endpoint, request);
    if (answer || answer.error().status == 0) return answer;
  }
  if (auto fetched = fetch_token(endpoint, request.until_ns); !fetched) {
    return std::unexpected(fetched.error());
  }
  return post_to(endpoint, request);
}

std::expected<std::string, EtcdError> EtcdGateway::post(std::string_view path,
                                                        const std::string& body,
                                                        std::uint64_t until_ns) {
  std::optional<EtcdError> error;
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    const std::size_t at = (first_ + i) % endpoints_.size();
    auto answer = ask(endpoints_[at], {path, body, until_ns});
    if (answer) {
      first_ = at;
      return std::move(*answer);
    }
    // While one endpoint may serve later, that the others do not is no reason to give up.
    if (!error || error->fault != EtcdFault::unavailable) {
      error = {answer.error().fault, "etcd at " + endpoints_[at] + ": " + answer.error().words};
    }
    if (base::monotonic_ns() >= until_ns) break;
  }
  return std::unexpected(error ? *std::move(error) : EtcdError{});
}

}  // namespace espalier::chain
