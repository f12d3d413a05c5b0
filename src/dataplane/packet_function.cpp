// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet_function.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "dataplane/planted_dataplane_bugs.hpp"
#include "fabric/roce/icrc.hpp"
#include "wire/ethernet.hpp"
#include "wire/roce.hpp"

namespace espalier::dataplane {
namespace {

using base::load_be;
using base::planted;
using base::store_be;
using wire::kEthernetBytes;
using wire::kEtherTypeIpv4;
using wire::kEtherTypeIpv6;
using wire::kEtherTypeServiceVlan;
using wire::kEtherTypeVlan;
using wire::kIpProtocolUdp;
using wire::kIpv4Bytes;
using wire::kIpv6Bytes;
using wire::kUdpBytes;
using wire::kUdpChecksumOffset;
using wire::kVlanTagBytes;
using wire::roce::BthBytes;
using wire::roce::kReadRequestBytes;
using wire::roce::RethBytes;

constexpr std::size_t kTagsMax = 2;
constexpr std::uint16_t kFragmentBits = 0x3FFF;  // "more follow" and the place

std::uint8_t load8(const std::byte* at) { return std::to_integer<std::uint8_t>(*at); }
std::uint16_t load16(const std::byte* at) { return load_be<std::uint16_t>(at); }

// The bytes of the IP header, if what follows it is a UDP datagram of just a READ request; else 0.
std::size_t v4_header_bytes(std::span<const std::byte> ip) {
  if (ip.size() < kIpv4Bytes || load8(ip.data()) >> 4 != 4) return 0;
  const std::size_t header = std::size_t{load8(ip.data()) & 0x0Fu} * 4;
  if (header < kIpv4Bytes || load16(ip.data() + 2) != header + kUdpBytes + kReadRequestBytes)
    return 0;
  if ((load16(ip.data() + 6) & kFragmentBits) != 0 || load8(ip.data() + 9) != kIpProtocolUdp)
    return 0;
  return header;
}

std::size_t v6_header_bytes(std::span<const std::byte> ip) {
  if (ip.size() < kIpv6Bytes || load8(ip.data()) >> 4 != 6) return 0;
  if (load16(ip.data() + 4) != kUdpBytes + kReadRequestBytes) return 0;
  return load8(ip.data() + 6) == kIpProtocolUdp ? kIpv6Bytes : 0;
}

// The words of what changes, as they stand in the frame: address, key, and ICRC.
using Changing = std::array<std::byte, 16>;

Changing changing_bytes(const std::byte* ib) {
  Changing bytes;
  constexpr std::size_t kBefore = offsetof(RethBytes, length);
  std::memcpy(bytes.data(), ib + sizeof(BthBytes), kBefore);
  std::memcpy(bytes.data() + kBefore, ib + kReadRequestBytes - wire::roce::kIcrcBytes,
              wire::roce::kIcrcBytes);
  return bytes;
}

std::uint32_t sum_words(const Changing& bytes, std::uint16_t flipped) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    sum += static_cast<std::uint16_t>(load16(bytes.data() + i) ^ flipped);
  }
  return sum;
}

// The checksum for the new bytes, by the difference [RFC 1624]. All of them lie at even distances
// from the header. One that comes to 0 is written as all ones, for 0 says that there is none.
void mend_checksum(std::byte* udp, const Changing& before, const Changing& after) {
  std::byte* const at = udp + kUdpChecksumOffset;
  std::uint32_t sum = static_cast<std::uint16_t>(~load16(at));
  sum += sum_words(before, 0xFFFF) + sum_words(after, 0);
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  const auto checksum = static_cast<std::uint16_t>(~sum);
  store_be(at, checksum == 0 ? std::uint16_t{0xFFFF} : checksum);
}

}  // namespace

ReadRequestParts find_read_request(std::span<std::byte> frame) {
  std::size_t at = kEthernetBytes;
  if (frame.size() < at) return {};
  std::uint16_t type = load16(frame.data() + at - 2);
  for (std::size_t tags = 0; tags < kTagsMax; ++tags) {
    if (type != kEtherTypeVlan && type != kEtherTypeServiceVlan) break;
    at += kVlanTagBytes;
    if (frame.size() < at) return {};
    type = load16(frame.data() + at - 2);
  }
  const auto ip = frame.subspan(at);
  std::size_t header = 0;
  if (type == kEtherTypeIpv4) header = v4_header_bytes(ip);
  if (type == kEtherTypeIpv6) header = v6_header_bytes(ip);
  if (header == 0 || ip.size() < header + kUdpBytes + kReadRequestBytes) return {};
  std::byte* const udp = ip.data() + header;
  if (load16(udp + 2) != wire::roce::kUdpPort) return {};
  if (load16(udp + 4) != kUdpBytes + kReadRequestBytes) return {};
  const std::byte* const bth = udp + kUdpBytes;
  constexpr auto kRead = static_cast<std::uint8_t>(wire::roce::PacketOpcode::read_request);
  constexpr std::uint8_t kFixed =
      wire::roce::kBthPadMask << wire::roce::kBthPadShift | wire::roce::kBthVersionMask;
  if (load8(bth) != kRead || (load8(bth + offsetof(BthBytes, flags)) & kFixed) != 0) return {};
  return {ip.subspan(header + kUdpBytes, kReadRequestBytes), udp};
}

void PacketFunction::add(const MapKeys& keys, const IndexTables& tables) {
  for (const Map& map : maps_) ESPALIER_ASSERT(map.keys.keyed != keys.keyed);
  maps_.push_back({keys, IndexLookup(tables)});
}

void PacketFunction::set_address(std::uint32_t keyed_key, const EntryPlace& place,
                                 std::uint64_t address) {
  const auto map = std::ranges::find(maps_, keyed_key, [](const Map& of) { return of.keys.keyed; });
  ESPALIER_ASSERT(map != maps_.end());
  map->lookup.set_address(place, address);
}

Processed PacketFunction::redirect(std::uint32_t& key, std::uint64_t& address) const {
  const auto map = std::ranges::find(maps_, key, [](const Map& of) { return of.keys.keyed; });
  if (map == maps_.end()) return {Outcome::read_passed, 0};
  const Found found = map->lookup.find(address);
  key = map->keys.redirect;
  address = found.address;
  return {Outcome::redirected, found.sets};
}

Processed PacketFunction::process(std::span<std::byte> frame) const {
  const ReadRequestParts request = find_read_request(frame);
  if (request.ib.empty()) return {};
  std::byte* const reth = request.ib.data() + sizeof(BthBytes);
  auto key = load_be<std::uint32_t>(reth + offsetof(RethBytes, key));
  auto address = load_be<std::uint64_t>(reth);
  const Processed done = redirect(key, address);
  if (done.outcome != Outcome::redirected) return done;
  const bool has_checksum = load16(request.udp + kUdpChecksumOffset) != 0;
  const Changing before = has_checksum ? changing_bytes(request.ib.data()) : Changing{};
  if (planted(Bug::icrc_not_updated)) {
    store_be(reth, address);
    store_be(reth + offsetof(RethBytes, key), key);
  } else {
    fabric::roce::redirect_read(request.ib, address, key);
  }
  if (has_checksum) mend_checksum(request.udp, before, changing_bytes(request.ib.data()));
  return done;
}

}  // namespace espalier::dataplane
