// SPDX-License-Identifier: Apache-2.0
// What a REQ says of IP: the service by its port, and both addresses in front of the private data
// [IBTA Volume 1, Annex A11]. fabric/roce/connection_format.hpp draws the bytes.
// Thread: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "fabric/roce/connection_message.hpp"
#include "fabric/roce/ip_flow.hpp"

namespace espalier::fabric::roce {

/// The id of the service at this port, and the port of such an id.
[[nodiscard]] constexpr std::uint64_t service_id(std::uint16_t port) {
  return wire::roce::kTcpPortSpace | port;
}
[[nodiscard]] constexpr std::optional<std::uint16_t> service_port(std::uint64_t id) {
  if ((id & ~wire::roce::kServiceIdPortMask) != wire::roce::kTcpPortSpace) return std::nullopt;
  return static_cast<std::uint16_t>(id);
}

struct IpService {
  std::uint16_t source_port = 0;
  IpAddress source;
  IpAddress destination;
  friend constexpr bool operator==(const IpService&, const IpService&) = default;
};
inline constexpr std::size_t kIpServiceBytes = sizeof(wire::roce::IpServiceBytes);
inline constexpr std::size_t kRequestDataBytes =
    sizeof(wire::roce::RequestBytes::private_data) - kIpServiceBytes;

/// Nothing if it is of another version, or the addresses of neither IPv4 nor IPv6. The addresses
/// are the peer's claim: where the packet came from is another question.
[[nodiscard]] std::optional<IpService> ip_service(const RequestMessage& request);
/// Requires: both addresses of one version.
void set_ip_service(RequestMessage& request, const IpService& service);

/// A request's private data behind that.
[[nodiscard]] std::span<const std::byte, kRequestDataBytes> request_data(
    const RequestMessage& request);
/// Requires: at most kRequestDataBytes. Fills the rest with zeros.
void set_request_data(RequestMessage& request, std::span<const std::byte> data);

}  // namespace espalier::fabric::roce
