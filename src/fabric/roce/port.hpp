// SPDX-License-Identifier: Apache-2.0
// A packet port: sends and receives packets by sockets, rings, or a simulated network.
//
// A port knows the headers around a packet (IP, UDP, and with them the ICRC); the engine behind it
// knows what is inside. So the engine writes a packet from its BTH to its pad straight into the
// port's memory, and the port seals it. A received packet is whole and has a valid ICRC; otherwise
// its contents are untrusted.
//
// Time is the port's too, so that a simulated network can have its own.
//
// Thread: one at a time, but for wake().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "espalier/error.hpp"
#include "fabric/roce/ip_flow.hpp"

namespace espalier::fabric::roce {

/// Where a port can be reached, or where a packet comes from.
struct PortAddress {
  IpAddress ip;
  std::uint16_t udp_port = 0;
  friend bool operator==(const PortAddress&, const PortAddress&) = default;
};

/// Reads "10.0.0.1", "10.0.0.1:4791", "fe80::1" or "[fe80::1]:4791". Without a port it is that of
/// RoCEv2. Errors: invalid_argument.
Result<PortAddress> parse_address(std::string_view text);
[[nodiscard]] std::string to_text(const PortAddress& address);

/// A packet that has come.
struct Arrived {
  PortAddress from;               // as its headers say; peer_address.hpp identifies the peer
  std::span<const std::byte> ib;  // BTH to ICRC
};

class PacketPort {
 public:
  PacketPort() = default;
  PacketPort(const PacketPort&) = delete;
  PacketPort& operator=(const PacketPort&) = delete;
  virtual ~PacketPort() = default;

  [[nodiscard]] virtual PortAddress address() const = 0;
  /// Receive buffer of a peer like this one, in bytes; more in flight gets lost.
  [[nodiscard]] virtual std::uint32_t window_bytes() const = 0;
  /// Payload of the largest packets that it can send and receive. Pairs with a larger MTU option
  /// use this; requests of peers for a larger one are rejected.
  [[nodiscard]] virtual std::uint32_t mtu_bytes_max() const { return 4096; }

  /// Whether what it sends to a peer comes there in order and once, if it comes.
  [[nodiscard]] virtual bool keeps_order() const { return false; }

  /// Room for a packet of so many bytes, BTH to pad, or null: there is none before the next
  /// flush(), or not even then. Followed by seal().
  virtual std::byte* begin(const PortAddress& to, std::size_t bytes) = 0;
  /// What begin() gave is written: it may go.
  virtual void seal() = 0;
  /// All that is sealed goes now.
  virtual void flush() = 0;

  /// What has come since the last call, as much as fits one burst. Valid until the next call.
  virtual std::span<const Arrived> receive() = 0;

  [[nodiscard]] virtual std::uint64_t now_ns() const = 0;
  /// Sleeps until something comes, or wake(), or for so long.
  virtual void wait(std::uint64_t timeout_ns) = 0;
  virtual void wake() = 0;
  /// As Endpoint::begin_sleep and end_sleep.
  virtual int begin_sleep() { return -1; }
  virtual void end_sleep() {}
};

}  // namespace espalier::fabric::roce
