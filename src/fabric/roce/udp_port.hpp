// SPDX-License-Identifier: Apache-2.0
// Packets through a UDP socket, without privileges.
//
// Sending small datagrams singly is slow, even in batches (measured: 0.3 million a second). So
// packets of one length to one peer leave as one long datagram that the kernel segments (GSO), and
// arrive as one that it has coalesced (GRO).
//
// The ICRC covers the IP header, which a socket does not show. All of it follows from the socket,
// since it is not connected and asks not to be fragmented; but for the id of IPv4, which is 0 in a
// datagram that leaves alone, and in what is cut counts the parts from 0. So the sender knows it,
// and the receiver tries: an ICRC is right if it is that of some id below kIdsMax. So for IPv4 it
// is a check of 25 bits instead of 32; IPv6 has no id, and loses nothing.
//
// Thread: one at a time, but for wake().
#pragma once

#include <cstdint>
#include <memory>

#include "espalier/error.hpp"
#include "fabric/roce/port.hpp"

namespace espalier::fabric::roce {

struct UdpPortOptions {
  PortAddress address;  // where to listen; UDP port 0: any that is free, below 49152
  bool offload = true;  // GSO and GRO
};

/// Counters of a port; for monitoring and tests.
struct UdpCounters {
  std::uint64_t sent = 0;
  std::uint64_t sends = 0;  // datagrams, each of many packets
  std::uint64_t received = 0;
  std::uint64_t receives = 0;  // the same
  std::uint64_t wrong_icrc = 0;
  std::uint64_t unsent = 0;  // the kernel had no room for them
};

class UdpPort : public PacketPort {
 public:
  /// IPv4 ids that a packet may have.
  static constexpr std::uint32_t kIdsMax = 128;

  /// Errors: invalid_argument (the address of no interface, 0.0.0.0 or ::), system (detail: errno;
  /// EADDRINUSE: another process listens there).
  static Result<std::unique_ptr<UdpPort>> open(const UdpPortOptions& options);
  [[nodiscard]] virtual const UdpCounters& counters() const = 0;
};

}  // namespace espalier::fabric::roce
