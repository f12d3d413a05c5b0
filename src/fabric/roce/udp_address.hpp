// SPDX-License-Identifier: Apache-2.0
// Addresses of ports in the form that the operating system takes.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "fabric/roce/peer_address.hpp"

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

/// Binds a UDP socket to the address; if that has UDP port 0, to any below kFlowPorts, which is
/// then in it. Returns whether that worked; if not, errno says why.
bool bind_below_flows(int socket, PortAddress& address);

}  // namespace espalier::fabric::roce
