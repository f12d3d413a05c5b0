// SPDX-License-Identifier: Apache-2.0
#include "fabric/host_name.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "fabric/address.hpp"
#include "fabric/roce/udp_address.hpp"

namespace espalier::fabric {
namespace {

constexpr std::size_t kNameBytesMax = 253;
constexpr std::size_t kLabelBytesMax = 63;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_label_byte(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

bool is_label(std::string_view text) {
  return !text.empty() && text.size() <= kLabelBytesMax &&
         std::ranges::all_of(text, is_label_byte) && text.front() != '-' && text.back() != '-';
}

}  // namespace

bool is_host_name(std::string_view text) {
  if (text.size() > kNameBytesMax) return false;
  std::string_view last;
  for (bool more = true; more;) {
    const std::size_t end = std::min(text.find('.'), text.size());
    last = text.substr(0, end);
    if (!is_label(last)) return false;
    more = end != text.size();
    text.remove_prefix(more ? end + 1 : end);
  }
  return !std::ranges::all_of(last, is_digit);
}

std::optional<roce::IpAddress> pick_address(const addrinfo* list, std::optional<bool> is_v6) {
  std::optional<roce::IpAddress> six;
  for (const addrinfo* at = list; at != nullptr; at = at->ai_next) {
    if (at->ai_family != AF_INET && at->ai_family != AF_INET6) continue;
    sockaddr_storage storage{};
    std::memcpy(&storage, at->ai_addr, std::min<std::size_t>(at->ai_addrlen, sizeof storage));
    const roce::IpAddress ip = roce::to_port_address(storage).ip;
    if (is_v6 && ip.is_v6 != *is_v6) continue;
    if (!is_of_one_machine(ip)) continue;
    if (!ip.is_v6) return ip;
    if (!six) six = ip;
  }
  return six;
}

Result<roce::IpAddress> look_up(const std::string& name, std::optional<bool> is_v6) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &wanted, &found) != 0) return fail(Code::system, ENXIO);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, ::freeaddrinfo);
  const auto picked = pick_address(list.get(), is_v6);
  if (!picked) return fail(Code::system, ENXIO);
  return *picked;
}

}  // namespace espalier::fabric
