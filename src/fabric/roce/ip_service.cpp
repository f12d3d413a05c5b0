// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/ip_service.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
#include "base/bytes.hpp"

namespace espalier::fabric::roce {
namespace {

using wire::roce::IpServiceBytes;

constexpr std::size_t kV4At = 12;  // of 16 bytes, the last 4

IpAddress get_address(std::uint8_t version, const std::uint8_t (&from)[16]) {
  IpAddress address;
  address.is_v6 = version == 6;
  if (address.is_v6) {
    std::memcpy(address.bytes.data(), from, sizeof from);
  } else {
    std::memcpy(address.bytes.data(), from + kV4At, sizeof from - kV4At);
  }
  return address;
}

void put_address(std::uint8_t (&to)[16], const IpAddress& from) {
  const std::size_t begin = from.is_v6 ? 0 : kV4At;
  std::memcpy(to + begin, from.bytes.data(), sizeof to - begin);
}

}  // namespace

std::optional<IpService> ip_service(const RequestMessage& request) {
  IpServiceBytes bytes;
  std::memcpy(&bytes, request.private_data.data(), sizeof bytes);
  const auto version = static_cast<std::uint8_t>(bytes.ip_version >> 4);
  if (bytes.version != 0 || (version != 4 && version != 6)) return std::nullopt;
  return IpService{base::load_be<std::uint16_t>(bytes.source_port),
                   get_address(version, bytes.source), get_address(version, bytes.destination)};
}

void set_ip_service(RequestMessage& request, const IpService& service) {
  ESPALIER_ASSERT(service.source.is_v6 == service.destination.is_v6);
  IpServiceBytes bytes{};
  bytes.ip_version = static_cast<std::uint8_t>((service.source.is_v6 ? 6 : 4) << 4);
  base::store_be(bytes.source_port, service.source_port);
  put_address(bytes.source, service.source);
  put_address(bytes.destination, service.destination);
  std::memcpy(request.private_data.data(), &bytes, sizeof bytes);
}

std::span<const std::byte, kRequestDataBytes> request_data(const RequestMessage& request) {
  return std::span(request.private_data).subspan<kIpServiceBytes>();
}

void set_request_data(RequestMessage& request, std::span<const std::byte> data) {
  ESPALIER_ASSERT(data.size() <= kRequestDataBytes);
  const auto own = std::span(request.private_data).subspan<kIpServiceBytes>();
  std::fill(std::copy(data.begin(), data.end(), own.begin()), own.end(), std::byte{0});
}

}  // namespace espalier::fabric::roce
