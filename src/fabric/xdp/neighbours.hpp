// SPDX-License-Identifier: Apache-2.0
// The kernel's routes and neighbours of one interface: the next hop to an address, and its hardware
// address. Asked through rtnetlink; the kernel answers immediately, from memory.
//
// The kernel resolves an unknown or stale neighbour when something is sent to it: an empty datagram
// to its discard port. It does that in its own time, by ARP or neighbour discovery. (Netlink can
// ask for it too, but over IPv6 that waits for an address of the link, which an interface gets
// late, or never.)
//
// Thread: one at a time. The socket is of the network namespace in which it was opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "espalier/error.hpp"
#include "fabric/roce/frame.hpp"
#include "fabric/roce/ip_flow.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::xdp {

class Neighbours {
 public:
  /// `own`: from where packets are sent. Errors: system.
  static Result<Neighbours> open(std::uint32_t interface, const roce::IpAddress& own);

  /// The next hop to this address: itself, or a router. Nothing: there is no route to it through
  /// this interface. Cost: a system call or two, some microseconds.
  std::optional<roce::IpAddress> next_hop(const roce::IpAddress& to);

  struct Neighbour {
    std::optional<roce::MacAddress> mac;
    bool is_sure = false;  // else it is worth a look
  };
  /// Cost: as next_hop().
  Neighbour find(const roce::IpAddress& next_hop);
  /// Makes the kernel resolve the next hop to this address, or check that it is still there.
  void look_for(const roce::IpAddress& to);

 private:
  Neighbours() = default;
  class Request;
  /// The kernel's answer without its header, of the type that is expected; else nothing.
  std::optional<std::span<const std::byte>> ask(Request& request, std::uint16_t answer);

  memory::Descriptor socket_;
  memory::Descriptor datagrams_;
  std::uint32_t interface_ = 0;
  roce::IpAddress own_;
  std::uint32_t sequence_ = 0;
  std::vector<std::byte> answer_;
};

}  // namespace espalier::fabric::xdp
