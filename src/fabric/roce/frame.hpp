// SPDX-License-Identifier: Apache-2.0
// Whole frames around RoCEv2 packets, for ports that carry Ethernet and not UDP.
//
//   0             6        12     (14    ) 14          34 or 54
//   +-------------+--------+------+--------+-----------+-----+------------------+
//   | destination | source | (VLAN tag, 4) | type | IP | UDP | BTH ... ICRC     |
//   +-------------+--------+---------------+------+----+-----+------------------+
//
// What is refused when read: IPv4 with options, fragments, extension headers of IPv6, anything but
// UDP, lengths that disagree, and wrong checksums. Behind the IP packet may be more bytes, for
// Ethernet fills up short frames. The frame check sequence of Ethernet is the port's affair.
//
// A UDP checksum of 0 means none. IPv4 allows that always; IPv6 to tunnels that say so [RFC 6935],
// and RoCEv2, whose ICRC is the better one, is taken for such: 0 is good on its port alone. What we
// write has 0, as network cards do. Where the kernel leaves the checksum to a card that then does
// nothing, between two interfaces of one machine, any must do; the ICRC is checked all the same.
//
// Thread: plain values and pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "fabric/roce/ip_flow.hpp"

namespace espalier::fabric::roce {

using MacAddress = std::array<std::uint8_t, 6>;

struct FrameHeader {
  MacAddress destination{};
  MacAddress source{};
  std::optional<std::uint16_t> vlan;  // the tag: priority 3, drop 1, VLAN 12
  IpFlow flow;
  std::uint8_t traffic_class = 0;  // DSCP 6, ECN 2
  std::uint8_t hop_limit = 64;     // IPv4's time to live
  std::uint16_t ip_id = 0;         // IPv4's
  std::uint32_t flow_label = 0;    // IPv6's, 20 bits
  friend constexpr bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

struct Frame : FrameHeader {
  std::span<const std::byte> ib;  // what UDP carries, in the bytes that were parsed
  std::uint16_t udp_checksum = 0;
};

inline constexpr std::size_t kFrameHeaderBytesMax = 14 + 4 + 40 + 8;

/// What is asked of the UDP checksum of a frame that has come.
enum class UdpChecksum : std::uint8_t { right, any };

/// Reads a frame. Nothing if it is no UDP, or is not as it should be. The port it goes to may be
/// any; ask.
[[nodiscard]] std::optional<Frame> parse_frame(std::span<const std::byte> frame,
                                               UdpChecksum checksum = UdpChecksum::right);

/// Bytes before the UDP payload.
[[nodiscard]] std::size_t frame_header_bytes(const FrameHeader& header);
/// Writes them, for a payload of `ib_bytes`, with IPv4's checksum and without UDP's. Returns their
/// number. Requires: room, addresses of one version, at most kIbBytesMax (icrc.hpp).
std::size_t write_frame_header(std::byte* to, const FrameHeader& header, std::size_t ib_bytes);
/// Gives a frame that we wrote, ICRC included, a UDP checksum. Requires: nothing behind it.
void set_udp_checksum(std::span<std::byte> frame);

}  // namespace espalier::fabric::roce
