// SPDX-License-Identifier: Apache-2.0
// Where the headers of a frame lie that a switch looks at: Ethernet with up to two VLAN tags, IPv4
// (options too) or IPv6, UDP. In line, for each frame that passes is looked at so.
//
// Thread: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "fabric/ethernet.hpp"
#include "fabric/roce/format.hpp"

namespace espalier::dataplane {

/// A datagram of UDP, of which the frame has the header at least.
struct Datagram {
  std::byte* ip = nullptr;
  std::byte* udp = nullptr;  // its header; null: the frame is none
  std::size_t bytes = 0;     // from that header on, as IP says; 0: the frame has not so many
};

inline std::uint8_t load8(const std::byte* at) { return std::to_integer<std::uint8_t>(*at); }
inline constexpr std::size_t kIpv4Checksum = 10;  // its place in the header
inline std::uint16_t load16(const std::byte* at) { return base::load_be<std::uint16_t>(at); }
inline bool is_v6(const Datagram& datagram) { return load8(datagram.ip) >> 4 == 6; }

/// Bytes of the header of IPv4; 0: it is none, or what follows is no datagram of UDP.
inline std::size_t v4_header_bytes(std::span<const std::byte> ip) {
  constexpr std::uint16_t kFragmentBits = 0x3FFF;  // "more follow" and the place
  if (ip.size() < wire::kIpv4Bytes || load8(ip.data()) >> 4 != 4) return 0;
  const std::size_t header = std::size_t{load8(ip.data()) & 0x0Fu} * 4;
  if (header < wire::kIpv4Bytes || ip.size() < header + wire::kUdpBytes) return 0;
  if ((load16(ip.data() + 6) & kFragmentBits) != 0) return 0;
  return load8(ip.data() + 9) == wire::kIpProtocolUdp ? header : 0;
}

/// The same of IPv6, without extension headers.
inline std::size_t v6_header_bytes(std::span<const std::byte> ip) {
  if (ip.size() < wire::kIpv6Bytes + wire::kUdpBytes || load8(ip.data()) >> 4 != 6) return 0;
  return load8(ip.data() + 6) == wire::kIpProtocolUdp ? wire::kIpv6Bytes : 0;
}

/// Any bytes may come. Checksums and UDP's own length are not looked at.
inline Datagram find_datagram(std::span<std::byte> frame) {
  constexpr std::size_t kTagsMax = 2;
  std::size_t at = wire::kEthernetBytes;
  if (frame.size() < at) return {};
  std::uint16_t type = load16(frame.data() + at - 2);
  for (std::size_t tags = 0; tags < kTagsMax; ++tags) {
    if (type != wire::kEtherTypeVlan && type != wire::kEtherTypeServiceVlan) break;
    at += wire::kVlanTagBytes;
    if (frame.size() < at) return {};
    type = load16(frame.data() + at - 2);
  }
  const auto ip = frame.subspan(at);
  const bool v4 = type == wire::kEtherTypeIpv4;
  if (!v4 && type != wire::kEtherTypeIpv6) return {};
  const std::size_t header = v4 ? v4_header_bytes(ip) : v6_header_bytes(ip);
  if (header == 0) return {};
  const std::size_t end = v4 ? load16(ip.data() + 2) : load16(ip.data() + 4) + header;
  const bool is_there = end >= header && end <= ip.size();
  return {ip.data(), ip.data() + header, is_there ? end - header : 0};
}

/// Whether a datagram to this port is of so many bytes by both lengths, UDP's header with it.
inline bool is_datagram(const Datagram& datagram, std::uint16_t port, std::size_t bytes) {
  return datagram.bytes == bytes && load16(datagram.udp + 2) == port &&
         load16(datagram.udp + 4) == bytes;
}

/// Whether these 32 bytes, from a BTH to an ICRC, are a READ request.
inline bool is_read_request(const std::byte* bth) {
  using wire::roce::BthBytes;
  constexpr auto kRead = static_cast<std::uint8_t>(wire::roce::PacketOpcode::read_request);
  constexpr std::uint8_t kFixed =
      wire::roce::kBthPadMask << wire::roce::kBthPadShift | wire::roce::kBthVersionMask;
  return load8(bth) == kRead && (load8(bth + offsetof(BthBytes, flags)) & kFixed) == 0;
}

}  // namespace espalier::dataplane
