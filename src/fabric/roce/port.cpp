// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/port.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>

#include "base/number_text.hpp"

namespace espalier::fabric::roce {

Result<PortAddress> parse_address(std::string_view text) {
  std::string_view host = text;
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return fail(Code::invalid_argument);
    host = text.substr(1, close - 1);
    port = text.substr(close + 1);
  } else if (const std::size_t colon = text.find(':');
             colon != std::string_view::npos && text.find(':', colon + 1) == text.npos) {
    host = text.substr(0, colon);
    port = text.substr(colon);
  }
  PortAddress address;
  address.udp_port = wire::roce::kUdpPort;
  if (!port.empty()) {
    const auto number = base::parse_digits<std::uint16_t>(port.substr(1));
    if (port[0] != ':' || !number || *number == 0) {
      return fail(Code::invalid_argument);
    }
    address.udp_port = *number;
  }
  const std::string name(host);
  const bool four = !text.starts_with('[');
  if (four && ::inet_pton(AF_INET, name.c_str(), address.ip.bytes.data()) == 1) return address;
  address.ip.is_v6 = true;
  if (::inet_pton(AF_INET6, name.c_str(), address.ip.bytes.data()) == 1) return address;
  return fail(Code::invalid_argument);
}

std::string to_text(const PortAddress& address) {
  char text[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(address.ip.is_v6 ? AF_INET6 : AF_INET, address.ip.bytes.data(), text, sizeof text);
  const std::string port = ":" + std::to_string(address.udp_port);
  return (address.ip.is_v6 ? "[" + std::string(text) + "]" : std::string(text)) + port;
}

}  // namespace espalier::fabric::roce
