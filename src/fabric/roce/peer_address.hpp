// SPDX-License-Identifier: Apache-2.0
// Identifies a peer by the source addresses of its packets.
//
// A peer of this software sends from the UDP port where it listens, which is below kFlowPorts. A
// network card listens at 4791, and sends from any port from kFlowPorts on, another one for each
// pair. So a peer of this software is identified by its port: no other process of its machine can
// send from there. Of a card only the machine is identified. No card has a loopback address, where
// ports distinguish the processes of different users.
//
// Thread: plain values and pure functions.
#pragma once

#include <cstdint>

#include "fabric/planted_fabric_bugs.hpp"
#include "fabric/roce/format.hpp"
#include "fabric/roce/port.hpp"

namespace espalier::fabric::roce {

/// From here on up, a packet's source port names no listener.
inline constexpr std::uint16_t kFlowPorts = 49152;

/// Whether what comes from there comes from a network card.
[[nodiscard]] constexpr bool is_flow(const PortAddress& from) {
  return from.udp_port >= kFlowPorts && !from.ip.is_loopback();
}
/// Where answers go to what came from there.
[[nodiscard]] constexpr PortAddress answers_to(const PortAddress& from) {
  return {from.ip, is_flow(from) ? wire::roce::kUdpPort : from.udp_port};
}

/// Where a peer listens, and from where it may send.
struct PeerAddress : PortAddress {
  bool is_card = false;

  /// Whether it may be that which sends from there.
  [[nodiscard]] bool sends_from(const PortAddress& from) const {
    if (planted(Bug::peer_of_any_port)) return from.ip == ip;
    return (is_card ? is_flow(from) : from.udp_port == udp_port) && from.ip == ip;
  }
};
/// The peer that has sent something from there.
[[nodiscard]] constexpr PeerAddress peer_at(const PortAddress& from) {
  return {answers_to(from), is_flow(from)};
}

}  // namespace espalier::fabric::roce
