// SPDX-License-Identifier: Apache-2.0
// The addresses and ports of a flow: what its packets' ICRC and frames take from it.
// Thread: plain values.
#pragma once

#include <array>
#include <cstdint>

#include "fabric/roce/format.hpp"

namespace espalier::fabric::roce {

/// An address of IPv4 or IPv6, its bytes in the order of the wire.
struct IpAddress {
  bool is_v6 = false;
  std::array<std::uint8_t, 16> bytes{};  // of IPv4 the first 4; the others 0

  static constexpr IpAddress v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
    return {false, {a, b, c, d}};
  }
  static constexpr IpAddress v6(const std::array<std::uint8_t, 16>& bytes) { return {true, bytes}; }

  /// As InfiniBand names a port: the IPv6 address, or ::ffff:a.b.c.d [Annex A17].
  [[nodiscard]] constexpr std::array<std::uint8_t, 16> gid() const {
    if (is_v6) return bytes;
    return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, bytes[0], bytes[1], bytes[2], bytes[3]};
  }
  /// Whether no other machine can come to it.
  [[nodiscard]] constexpr bool is_loopback() const {
    if (!is_v6) return bytes[0] == 127;
    constexpr std::array<std::uint8_t, 16> kOne{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    const bool is_mapped = gid() == v4(bytes[12], bytes[13], bytes[14], bytes[15]).gid();
    return bytes == kOne || (is_mapped && bytes[12] == 127);
  }
  friend constexpr bool operator==(const IpAddress&, const IpAddress&) = default;
};

/// One direction of a conversation. Both addresses are of one version.
struct IpFlow {
  IpAddress source;
  IpAddress destination;
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = wire::roce::kUdpPort;
  bool dont_fragment = true;  // IPv4's flag

  /// What comes back on it, if the peer answers to where it heard from.
  [[nodiscard]] constexpr IpFlow reversed() const {
    return {destination, source, destination_port, source_port, dont_fragment};
  }
  friend constexpr bool operator==(const IpFlow&, const IpFlow&) = default;
};

}  // namespace espalier::fabric::roce
