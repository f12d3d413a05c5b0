// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/udp_address.hpp"

#include <cerrno>
#include <cstring>

#include "base/clock.hpp"

namespace espalier::fabric::roce {

SocketAddress::SocketAddress(const PortAddress& address) {
  if (address.ip.is_v6) {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(address.udp_port);
    std::memcpy(&six.sin6_addr, address.ip.bytes.data(), sizeof six.sin6_addr);
    std::memcpy(&storage, &six, sizeof six);
    bytes = sizeof six;
  } else {
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = htons(address.udp_port);
    std::memcpy(&four.sin_addr, address.ip.bytes.data(), sizeof four.sin_addr);
    std::memcpy(&storage, &four, sizeof four);
    bytes = sizeof four;
  }
}

PortAddress to_port_address(const sockaddr_storage& storage) {
  PortAddress address;
  if (storage.ss_family == AF_INET6) {
    sockaddr_in6 six;
    std::memcpy(&six, &storage, sizeof six);
    address.ip.is_v6 = true;
    address.udp_port = ntohs(six.sin6_port);
    std::memcpy(address.ip.bytes.data(), &six.sin6_addr, sizeof six.sin6_addr);
  } else {
    sockaddr_in four;
    std::memcpy(&four, &storage, sizeof four);
    address.udp_port = ntohs(four.sin_port);
    std::memcpy(address.ip.bytes.data(), &four.sin_addr, sizeof four.sin_addr);
  }
  return address;
}

bool bind_below_flows(int socket, PortAddress& address) {
  if (address.udp_port != 0) {
    const SocketAddress name(address);
    return ::bind(socket, name.get(), name.bytes) == 0;
  }
  constexpr std::uint16_t kBegin = 20000;
  constexpr std::uint32_t kPorts = kFlowPorts - kBegin;
  const std::uint64_t start = base::monotonic_ns();
  for (std::uint32_t i = 0; i < kPorts; ++i) {
    address.udp_port = static_cast<std::uint16_t>(kBegin + (start / 1024 + i) % kPorts);
    const SocketAddress name(address);
    if (::bind(socket, name.get(), name.bytes) == 0) return true;
    if (errno != EADDRINUSE) return false;
  }
  return false;
}

}  // namespace espalier::fabric::roce
