// SPDX-License-Identifier: Apache-2.0
// Addresses of ports in the form that the operating system takes, and which UDP ports are whose.
//
// A peer that is a network card sends from any UDP port above 49151 and listens at 4791; those of
// ours send from the port where they listen, which is below.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "fabric/roce/port.hpp"

namespace espalier::fabric::roce {

/// An address of either version.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof(sockaddr_storage);

  SocketAddress() = default;
  explicit SocketAddress(const PortAddress& address);
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

/// Requires: an address of IPv4 or IPv6.
[[nodiscard]] PortAddress to_port_address(const sockaddr_storage& storage);

/// From here on up, a packet's source port names no listener.
inline constexpr std::uint16_t kFlowPorts = 49152;
/// Where answers go to what came from there.
[[nodiscard]] constexpr PortAddress answers_to(const PortAddress& from) {
  return {from.ip, from.udp_port < kFlowPorts ? from.udp_port : wire::roce::kUdpPort};
}
/// Binds a UDP socket to the address; if that has UDP port 0, to any that names a listener, which
/// is then in it. Returns whether that worked; if not, errno says why.
bool bind_below_flows(int socket, PortAddress& address);

}  // namespace espalier::fabric::roce
