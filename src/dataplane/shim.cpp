// SPDX-License-Identifier: Apache-2.0
#include "dataplane/shim.hpp"

#include <cstring>

#include "dataplane/datagram_hints.hpp"
#include "dataplane/planted_dataplane_bugs.hpp"

namespace espalier::dataplane {
namespace {

using base::load_be;
using base::store_be;
using wire::kUdpBytes;
using wire::roce::kReadRequestBytes;

constexpr std::size_t kCarriedBytes = kUdpBytes + kShimBytes + kReadRequestBytes;

std::uint8_t version_kind_of(ShimKind kind) {
  return static_cast<std::uint8_t>(kShimVersion << 4 | static_cast<std::uint8_t>(kind));
}

// The sum of 16-bit words, in which 2^16 counts as 1 [RFC 1071].
std::uint16_t folded(std::uint32_t sum) {
  sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>((sum & 0xFFFF) + (sum >> 16));
}

std::uint16_t sum_of(const std::byte* shim) {
  std::uint32_t sum = 0;
  for (std::size_t at = 0; at < kShimBytes; at += 2) sum += load16(shim + at);
  return folded(sum);
}

// The lengths of IP and UDP; IPv4's checksum follows by the difference [RFC 1624], so that one that
// was wrong stays wrong.
void set_lengths(const Datagram& datagram, std::size_t bytes) {
  store_be(datagram.udp + 4, static_cast<std::uint16_t>(bytes));
  if (is_v6(datagram)) return store_be(datagram.ip + 4, static_cast<std::uint16_t>(bytes));
  std::byte* const length = datagram.ip + 2;
  std::byte* const checksum = datagram.ip + kIpv4Checksum;
  const std::uint16_t before = load16(length);
  const auto header = static_cast<std::size_t>(datagram.udp - datagram.ip);
  const auto after = static_cast<std::uint16_t>(header + bytes);
  const std::uint32_t sum = static_cast<std::uint32_t>(static_cast<std::uint16_t>(~before)) +
                            static_cast<std::uint16_t>(~load16(checksum)) + after;
  store_be(length, after);
  store_be(checksum, static_cast<std::uint16_t>(~folded(sum)));
}

}  // namespace

std::optional<Shim> read_shim(const std::byte* from, ShimKind kind) {
  if (load8(from) != version_kind_of(kind) || sum_of(from) != 0xFFFF) return std::nullopt;
  // To no other port: what comes out must be what went in.
  if (load16(from + offsetof(ShimBytes, port)) != port_of(kind)) return std::nullopt;
  Shim shim;
  shim.kind = kind;
  shim.hops = load8(from + offsetof(ShimBytes, hops));
  shim.server = load16(from + offsetof(ShimBytes, server));
  shim.generation = load_be<std::uint32_t>(from + offsetof(ShimBytes, generation));
  shim.cursor = load_be<std::uint32_t>(from + offsetof(ShimBytes, cursor));
  return shim;
}

void write_shim(std::byte* to, const Shim& shim) {
  to[0] = std::byte{version_kind_of(shim.kind)};
  to[offsetof(ShimBytes, hops)] = std::byte{shim.hops};
  store_be(to + offsetof(ShimBytes, server), shim.server);
  store_be(to + offsetof(ShimBytes, generation), shim.generation);
  store_be(to + offsetof(ShimBytes, cursor), shim.cursor);
  store_be(to + offsetof(ShimBytes, port), port_of(shim.kind));
  store_be(to + offsetof(ShimBytes, checksum), std::uint16_t{0});
  store_be(to + offsetof(ShimBytes, checksum), static_cast<std::uint16_t>(~sum_of(to)));
}

std::optional<Shim> find_shim(const Datagram& datagram) {
  const std::byte* const shim = datagram.udp + kUdpBytes;
  if (is_datagram(datagram, kShimPort, kCarriedBytes)) {
    if (!is_read_request(shim + kShimBytes)) return std::nullopt;
    return read_shim(shim, ShimKind::read);
  }
  if (!is_datagram(datagram, kGetShimPort, datagram.bytes)) return std::nullopt;
  if (datagram.bytes < kUdpBytes + kShimBytes || !get_in(behind_shim(datagram))) {
    return std::nullopt;
  }
  return read_shim(shim, ShimKind::get);
}

void add_shim(std::span<std::byte> frame, const Datagram& before, const Shim& shim) {
  std::byte* const at = before.udp + kUdpBytes;
  std::memmove(at + kShimBytes, at, static_cast<std::size_t>(frame.data() + frame.size() - at));
  write_shim(at, shim);
  store_be(before.udp + 2, shim_port_of(shim.kind));
  set_lengths(before, before.bytes + kShimBytes);
}

void remove_shim(std::span<std::byte> frame, const Datagram& carried) {
  std::byte* const at = carried.udp + kUdpBytes;
  const auto behind = static_cast<std::size_t>(frame.data() + frame.size() - at) - kShimBytes;
  std::memmove(at, at + kShimBytes, behind);
  const auto port = static_cast<std::uint16_t>(load16(carried.udp + 2) + 2 * kShimBytes);
  store_be(carried.udp + 2, port);
  if (base::planted(Bug::frame_not_restored)) return;
  set_lengths(carried, carried.bytes - kShimBytes);
}

}  // namespace espalier::dataplane
