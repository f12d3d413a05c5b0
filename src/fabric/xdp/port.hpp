// SPDX-License-Identifier: Apache-2.0
// Packets of RoCEv2 as Ethernet frames through AF_XDP: from a network interface's driver into our
// memory and back, past the kernel's own network stack. Any interface will do; some drivers write
// into our memory themselves, with the others the kernel copies.
//
// A port takes from its interface the packets for its address and UDP port (filter.hpp), from all
// of its queues; everything else goes on to the kernel as before. An interface has one port at
// most. To the kernel the port is a UDP socket that is never read, so that no other program gets
// the same UDP port.
//
// Peers are network cards, ports of this kind, and UDP ports (roce/udp_port.hpp). For the last, the
// id of IPv4 is 0, and packets of IPv6 have a UDP checksum; received ones are not checked, for the
// kernel leaves them to the card, which between two machines in one does nothing. The ICRC covers
// the same bytes and more.
//
// The kernel decides where frames go (next_hops.hpp). A packet to a peer whose hardware address is
// not known yet gets lost, as on a cable; the kernel resolves it, and the engine retransmits.
//
// Needs CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF; libxdp and libbpf; Linux 5.11.
//
// Thread: one at a time, but for wake().
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "espalier/error.hpp"
#include "fabric/roce/port.hpp"

namespace espalier::fabric::xdp {

struct XdpPortOptions {
  std::string interface;
  roce::PortAddress address;  // of the interface; UDP port 0: any that is free, below 49152
  bool native = true;         // let the driver run the program, if it can
};

/// Counters of a port; for monitoring and tests.
struct XdpCounters {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;  // good ones
  std::uint64_t not_ours = 0;  // damaged frames, or lengths that disagree
  std::uint64_t wrong_icrc = 0;
  std::uint64_t unsent = 0;   // longer than the MTU, or of the other version of IP
  std::uint64_t unknown = 0;  // went nowhere: the kernel knows no hardware address, or no way
};

class XdpPort : public roce::PacketPort {
 public:
  /// Payload of the largest packets that fit.
  static constexpr std::uint32_t kMtuBytes = 1024;

  /// Errors: unsupported (detail: an Unsupported), invalid_argument (the address of no interface),
  /// system (detail: errno; ENODEV: no such interface, EADDRNOTAVAIL: it has not this address,
  /// EADDRINUSE: another socket has the UDP port).
  static Result<std::unique_ptr<XdpPort>> open(const XdpPortOptions& options);

  [[nodiscard]] virtual const XdpCounters& counters() const = 0;
  /// Whether the driver runs the program; else the kernel does, for each packet that it has made.
  [[nodiscard]] virtual bool is_native() const = 0;
  /// Whether the driver writes into the port's memory; else the kernel copies.
  [[nodiscard]] virtual bool is_zero_copy() const = 0;
  [[nodiscard]] virtual std::size_t queues() const = 0;
};

}  // namespace espalier::fabric::xdp
