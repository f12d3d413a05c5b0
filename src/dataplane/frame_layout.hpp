// SPDX-License-Identifier: Apache-2.0
// Numbers of a frame that carries a READ request, for whatever takes one apart: the packet
// function, and the constants of the P4 program.
//
// Thread: constants.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/roce.hpp"

namespace espalier::dataplane {

inline constexpr std::uint16_t kTypeVlan = 0x8100;
inline constexpr std::uint16_t kTypeServiceVlan = 0x88A8;
inline constexpr std::uint16_t kTypeIpv4 = 0x0800;
inline constexpr std::uint16_t kTypeIpv6 = 0x86DD;
inline constexpr std::uint8_t kProtocolUdp = 17;
inline constexpr std::size_t kUdpBytes = 8;
/// A READ request from the BTH to the ICRC.
inline constexpr std::size_t kRequestBytes =
    sizeof(wire::roce::BthBytes) + sizeof(wire::roce::RethBytes) + wire::roce::kIcrcBytes;

}  // namespace espalier::dataplane
