// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/frame.hpp"

#include <cstring>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "fabric/ethernet.hpp"
#include "fabric/roce/icrc.hpp"

namespace espalier::fabric::roce {
namespace {

using base::load_be;
using base::store_be;
using wire::kEthernetBytes;
using wire::kEtherTypeIpv4;
using wire::kEtherTypeIpv6;
using wire::kEtherTypeVlan;
using wire::kIpProtocolUdp;
using wire::kIpv4Bytes;
using wire::kIpv6Bytes;
using wire::kUdpBytes;
using wire::kVlanTagBytes;
using Bytes = std::span<const std::byte>;

constexpr std::uint16_t kDontFragment = 0x4000;

std::uint16_t load16(const std::byte* at) { return load_be<std::uint16_t>(at); }
std::uint8_t load8(const std::byte* at) { return std::to_integer<std::uint8_t>(*at); }

/// Sums words of 16 bits for a checksum of the Internet [RFC 1071]; bytes of an odd number are
/// followed by a 0. Of 64 KiB the sum stays far below its 64 bits.
std::uint64_t sum_words(Bytes bytes, std::uint64_t sum = 0) {
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 4; at += 4, left -= 4) sum += load_be<std::uint32_t>(at);
  if (left >= 2) {
    sum += load16(at);
    at += 2;
    left -= 2;
  }
  return left == 0 ? sum : sum + std::uint64_t{load8(at)} * 256;
}

std::uint16_t fold_sum(std::uint64_t sum) {
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

/// Of the UDP datagram and what of IP its checksum covers; all ones if a checksum in it is right.
std::uint16_t udp_sum(const IpFlow& flow, Bytes udp) {
  const std::size_t address_bytes = flow.source.is_v6 ? 16 : 4;
  std::uint64_t sum = udp.size() + kIpProtocolUdp;
  sum = sum_words(std::as_bytes(std::span(flow.source.bytes).first(address_bytes)), sum);
  sum = sum_words(std::as_bytes(std::span(flow.destination.bytes).first(address_bytes)), sum);
  return fold_sum(sum_words(udp, sum));
}

IpAddress load_address(const std::byte* at, bool is_v6) {
  IpAddress address{is_v6, {}};
  std::memcpy(address.bytes.data(), at, is_v6 ? 16 : 4);
  return address;
}

/// Each of these reads a header and returns what it carries; nothing if it is refused.
std::optional<Bytes> read_v4(Bytes ip, Frame& to) {
  if (ip.size() < kIpv4Bytes || load8(ip.data()) != 0x45) return std::nullopt;
  const std::byte* const at = ip.data();
  const std::size_t total = load16(at + 2);
  // Of the word with the fragment's place only one flag may be set; the reserved bit is covered by
  // the ICRC, and no sender sets it.
  const std::uint16_t fragment = load16(at + 6);
  if (total < kIpv4Bytes || total > ip.size() || (fragment & ~kDontFragment) != 0 ||
      load8(at + 9) != kIpProtocolUdp || fold_sum(sum_words(ip.first(kIpv4Bytes))) != 0xFFFF) {
    return std::nullopt;
  }
  to.traffic_class = load8(at + 1);
  to.ip_id = load16(at + 4);
  to.flow.dont_fragment = fragment != 0;
  to.hop_limit = load8(at + 8);
  to.flow.source = load_address(at + 12, false);
  to.flow.destination = load_address(at + 16, false);
  return ip.subspan(kIpv4Bytes, total - kIpv4Bytes);
}

std::optional<Bytes> read_v6(Bytes ip, Frame& to) {
  if (ip.size() < kIpv6Bytes) return std::nullopt;
  const std::byte* const at = ip.data();
  const auto first = load_be<std::uint32_t>(at);
  const std::size_t payload = load16(at + 4);
  if (first >> 28 != 6 || payload > ip.size() - kIpv6Bytes || load8(at + 6) != kIpProtocolUdp) {
    return std::nullopt;
  }
  to.traffic_class = static_cast<std::uint8_t>(first >> 20);
  to.flow_label = first & 0xF'FFFF;
  to.hop_limit = load8(at + 7);
  to.flow.source = load_address(at + 8, true);
  to.flow.destination = load_address(at + 24, true);
  return ip.subspan(kIpv6Bytes, payload);
}

bool read_udp(Bytes udp, Frame& to, UdpChecksum checksum) {
  // A datagram shorter than its IP packet would be a place to hide things in: the ICRC covers both
  // lengths, but not what lies between them.
  if (udp.size() < kUdpBytes || load16(udp.data() + 4) != udp.size()) return false;
  to.flow.source_port = load16(udp.data());
  to.flow.destination_port = load16(udp.data() + 2);
  to.udp_checksum = load16(udp.data() + 6);
  to.ib = udp.subspan(kUdpBytes);
  if (checksum == UdpChecksum::any) return true;
  if (to.udp_checksum == 0) {
    return !to.flow.source.is_v6 || to.flow.destination_port == wire::roce::kUdpPort;
  }
  return udp_sum(to.flow, udp) == 0xFFFF;
}

std::size_t ip_bytes(const IpFlow& flow) { return flow.source.is_v6 ? kIpv6Bytes : kIpv4Bytes; }

// The checksum is of the numbers, not of the bytes: to read back what was just written in pieces
// waits until it has reached the cache, and the line may still be another core's.
void write_v4(std::byte* at, const FrameHeader& header, std::size_t udp_bytes) {
  const auto first = static_cast<std::uint16_t>(0x4500 | header.traffic_class);
  const auto total = static_cast<std::uint16_t>(kIpv4Bytes + udp_bytes);
  const std::uint16_t flags = header.flow.dont_fragment ? kDontFragment : std::uint16_t{0};
  const auto hops = static_cast<std::uint16_t>(header.hop_limit << 8 | kIpProtocolUdp);
  const auto source = load_be<std::uint32_t>(header.flow.source.bytes.data());
  const auto destination = load_be<std::uint32_t>(header.flow.destination.bytes.data());
  const std::uint64_t sum = std::uint64_t{first} + total + header.ip_id + flags + hops +
                            (source >> 16) + (source & 0xFFFF) + (destination >> 16) +
                            (destination & 0xFFFF);
  store_be(at, first);
  store_be(at + 2, total);
  store_be(at + 4, header.ip_id);
  store_be(at + 6, flags);
  store_be(at + 8, hops);
  store_be(at + 10, static_cast<std::uint16_t>(~fold_sum(sum)));
  store_be(at + 12, source);
  store_be(at + 16, destination);
}

void write_v6(std::byte* at, const FrameHeader& header, std::size_t udp_bytes) {
  store_be(at,
           6u << 28 | std::uint32_t{header.traffic_class} << 20 | (header.flow_label & 0xF'FFFF));
  store_be(at + 4, static_cast<std::uint16_t>(udp_bytes));
  store_be(at + 6, kIpProtocolUdp);
  store_be(at + 7, header.hop_limit);
  std::memcpy(at + 8, header.flow.source.bytes.data(), 16);
  std::memcpy(at + 24, header.flow.destination.bytes.data(), 16);
}

}  // namespace

std::optional<Frame> parse_frame(Bytes bytes, UdpChecksum checksum) {
  if (bytes.size() < kEthernetBytes) return std::nullopt;
  Frame frame;
  std::memcpy(frame.destination.data(), bytes.data(), 6);
  std::memcpy(frame.source.data(), bytes.data() + 6, 6);
  std::uint16_t type = load16(bytes.data() + 12);
  bytes = bytes.subspan(kEthernetBytes);
  if (type == kEtherTypeVlan) {
    if (bytes.size() < kVlanTagBytes) return std::nullopt;
    frame.vlan = load16(bytes.data());
    type = load16(bytes.data() + 2);
    bytes = bytes.subspan(kVlanTagBytes);
  }
  std::optional<Bytes> udp;
  if (type == kEtherTypeIpv4) udp = read_v4(bytes, frame);
  if (type == kEtherTypeIpv6) udp = read_v6(bytes, frame);
  if (!udp || !read_udp(*udp, frame, checksum)) return std::nullopt;
  return frame;
}

std::size_t frame_header_bytes(const FrameHeader& header) {
  return kEthernetBytes + (header.vlan ? kVlanTagBytes : 0) + ip_bytes(header.flow) + kUdpBytes;
}

std::size_t write_frame_header(std::byte* to, const FrameHeader& header, std::size_t ib_bytes) {
  const IpFlow& flow = header.flow;
  ESPALIER_ASSERT(flow.source.is_v6 == flow.destination.is_v6 && ib_bytes <= kIbBytesMax);
  std::memcpy(to, header.destination.data(), 6);
  std::memcpy(to + 6, header.source.data(), 6);
  std::byte* at = to + 12;
  if (header.vlan) {
    store_be(at, kEtherTypeVlan);
    store_be(at + 2, *header.vlan);
    at += kVlanTagBytes;
  }
  store_be(at, flow.source.is_v6 ? kEtherTypeIpv6 : kEtherTypeIpv4);
  at += 2;
  const std::size_t udp_bytes = kUdpBytes + ib_bytes;
  if (flow.source.is_v6) {
    write_v6(at, header, udp_bytes);
  } else {
    write_v4(at, header, udp_bytes);
  }
  at += ip_bytes(flow);
  store_be(at, flow.source_port);
  store_be(at + 2, flow.destination_port);
  store_be(at + 4, static_cast<std::uint16_t>(udp_bytes));
  store_be<std::uint16_t>(at + 6, 0);
  return static_cast<std::size_t>(at + kUdpBytes - to);
}

void set_udp_checksum(std::span<std::byte> bytes) {
  const bool tagged = load16(bytes.data() + 12) == kEtherTypeVlan;
  const std::size_t ip = kEthernetBytes + (tagged ? kVlanTagBytes : 0);
  const bool is_v6 = load16(bytes.data() + ip - 2) == kEtherTypeIpv6;
  const std::byte* const addresses = bytes.data() + ip + (is_v6 ? 8 : 12);
  IpFlow flow;
  flow.source = load_address(addresses, is_v6);
  flow.destination = load_address(addresses + (is_v6 ? 16 : 4), is_v6);
  const std::span<std::byte> udp = bytes.subspan(ip + ip_bytes(flow));
  store_be<std::uint16_t>(udp.data() + 6, 0);
  const auto checksum = static_cast<std::uint16_t>(~udp_sum(flow, udp));
  // 0 says that there is none; all ones is the same number in this arithmetic.
  store_be<std::uint16_t>(udp.data() + 6, checksum == 0 ? 0xFFFF : checksum);
}

}  // namespace espalier::fabric::roce
