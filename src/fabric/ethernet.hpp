// SPDX-License-Identifier: Apache-2.0
// Constants of the headers before a RoCEv2 packet: Ethernet, VLAN tags, IP, UDP. For code that
// reads or writes whole frames; fabric/roce/frame.hpp draws the headers.
//
// All numbers of these headers are big-endian.
#pragma once

#include <cstddef>
#include <cstdint>

namespace espalier::wire {

inline constexpr std::size_t kEthernetBytes = 14;
inline constexpr std::size_t kVlanTagBytes = 4;
inline constexpr std::uint16_t kEtherTypeVlan = 0x8100;
inline constexpr std::uint16_t kEtherTypeServiceVlan = 0x88A8;
inline constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr std::uint16_t kEtherTypeIpv6 = 0x86DD;
inline constexpr std::size_t kIpv4Bytes = 20;  // without options
inline constexpr std::size_t kIpv6Bytes = 40;
inline constexpr std::uint8_t kIpProtocolUdp = 17;
inline constexpr std::size_t kUdpBytes = 8;
inline constexpr std::size_t kUdpChecksumOffset = 6;

}  // namespace espalier::wire
