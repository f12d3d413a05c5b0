// SPDX-License-Identifier: Apache-2.0
#include "chain/etcd_access.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "crypto/secret_file.hpp"

namespace espalier::chain {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kWhat = "file of etcd";

std::string_view without_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

/// The field for such a keyword; null: unknown.
std::string* place_of(EtcdAccess& access, std::string_view word) {
  const std::pair<std::string_view, std::string*> places[] = {{"user", &access.user},
                                                              {"password", &access.password},
                                                              {"ca", &access.ca},
                                                              {"certificate", &access.certificate},
                                                              {"key", &access.key}};
  const auto* const at = std::ranges::find(places, word, [](const auto& one) { return one.first; });
  return at != std::end(places) ? at->second : nullptr;
}

/// What is wrong with a line; nothing: it was accepted.
std::optional<std::string> take(EtcdAccess& access, std::string_view line) {
  line = without_blanks(line);
  if (line.empty() || line.front() == '#') return std::nullopt;
  const std::size_t end = std::min(line.find_first_of(kBlanks), line.size());
  const std::string_view value = without_blanks(line.substr(end));
  std::string* const into = place_of(access, line.substr(0, end));
  if (into == nullptr) {
    return "a line begins with user, password, ca, certificate or key";
  }
  if (value.empty()) return "nothing stands behind the word";
  if (!into->empty()) return "the word was there before";
  *into = value;
  return std::nullopt;
}

/// What is missing among the lines.
std::optional<std::string> lack_of(const EtcdAccess& access) {
  if (access.user.empty() != access.password.empty()) {
    return "user and password belong together";
  }
  if (access.certificate.empty() != access.key.empty()) {
    return "certificate and key belong together";
  }
  if (!access.certificate.empty() && !access.by_tls()) {
    return "a certificate is of use by TLS alone: say by 'ca PATH' whom to trust";
  }
  if (access.user.empty() && !access.by_tls()) return "it says nothing";
  return std::nullopt;
}

bool is_loopback(std::string_view endpoint) {
  const std::string_view host = endpoint.substr(0, endpoint.rfind(':'));
  return host == "localhost" || host == "[::1]" || host == "127.0.0.1";
}

}  // namespace

std::expected<EtcdAccess, std::string> read_etcd_access(const std::string& path) {
  EtcdAccess access;
  std::optional<std::string> mistake;
  const auto take_line = [&](std::uint32_t number, std::string_view line) {
    if (const auto wrong = take(access, line)) {
      mistake = "line " + std::to_string(number) + ": " + *wrong;
    }
    return !mistake;
  };
  const auto read = crypto::read_secret_lines(path, kWhat, take_line);
  if (!read) return std::unexpected(read.error().words);
  if (!mistake) mistake = lack_of(access);
  if (mistake) return std::unexpected("the " + std::string(kWhat) + " " + path + ": " + *mistake);
  return access;
}

bool shows_password(const EtcdAccess& access, const std::vector<std::string>& endpoints) {
  return !access.password.empty() && !access.by_tls() &&
         !std::ranges::all_of(endpoints, is_loopback);
}

}  // namespace espalier::chain
