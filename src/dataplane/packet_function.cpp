// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet_function.hpp"

#include <algorithm>
#include <array>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "dataplane/planted_dataplane_bugs.hpp"
#include "fabric/ethernet.hpp"
#include "fabric/roce/format.hpp"
#include "fabric/roce/icrc.hpp"

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

// From the UDP header on.
constexpr std::size_t kAddressOffset = kUdpBytes + sizeof(BthBytes);
constexpr std::size_t kKeyOffset = kAddressOffset + offsetof(RethBytes, key);
constexpr std::size_t kIcrcOffset = kUdpBytes + kReadRequestBytes - wire::roce::kIcrcBytes;

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

// The UDP header of a READ request; null: the frame is none.
std::byte* find_udp(std::span<std::byte> frame) {
  std::size_t at = kEthernetBytes;
  if (frame.size() < at) return nullptr;
  std::uint16_t type = load16(frame.data() + at - 2);
  for (std::size_t tags = 0; tags < kTagsMax; ++tags) {
    if (type != kEtherTypeVlan && type != kEtherTypeServiceVlan) break;
    at += kVlanTagBytes;
    if (frame.size() < at) return nullptr;
    type = load16(frame.data() + at - 2);
  }
  const auto ip = frame.subspan(at);
  std::size_t header = 0;
  if (type == kEtherTypeIpv4) header = v4_header_bytes(ip);
  if (type == kEtherTypeIpv6) header = v6_header_bytes(ip);
  if (header == 0 || ip.size() < header + kUdpBytes + kReadRequestBytes) return nullptr;
  std::byte* const udp = ip.data() + header;
  if (load16(udp + 2) != wire::roce::kUdpPort) return nullptr;
  if (load16(udp + 4) != kUdpBytes + kReadRequestBytes) return nullptr;
  const std::byte* const bth = udp + kUdpBytes;
  constexpr auto kRead = static_cast<std::uint8_t>(wire::roce::PacketOpcode::read_request);
  constexpr std::uint8_t kFixed =
      wire::roce::kBthPadMask << wire::roce::kBthPadShift | wire::roce::kBthVersionMask;
  if (load8(bth) != kRead || (load8(bth + offsetof(BthBytes, flags)) & kFixed) != 0) return nullptr;
  return udp;
}

std::uint64_t address_of(const std::byte* udp) {
  return load_be<std::uint64_t>(udp + kAddressOffset);
}
std::uint32_t key_of(const std::byte* udp) { return load_be<std::uint32_t>(udp + kKeyOffset); }

// What 16-bit words add to a sum that is folded, taken 32 bits at a time: 2^16 counts as 1 there.
std::uint64_t halves(std::uint64_t number) { return (number >> 32) + (number & 0xFFFF'FFFF); }

// The checksum when some words change, by the difference [RFC 1624]: `sum` is of the new words and
// of the old ones, these inverted. All of them lie at even distances from the header. One that
// comes to 0 is written as all ones, for 0 says that there is none.
void mend_checksum(std::byte* udp, std::uint64_t sum) {
  std::byte* const at = udp + kUdpChecksumOffset;
  sum += static_cast<std::uint16_t>(~load16(at));
  sum = halves(sum);
  for (int i = 0; i < 3; ++i) sum = (sum & 0xFFFF) + (sum >> 16);
  const auto checksum = static_cast<std::uint16_t>(~sum);
  store_be(at, checksum == 0 ? std::uint16_t{0xFFFF} : checksum);
}

/// A READ request that is redirected, from what it says to what it will say.
struct Redirected {
  std::byte* udp;
  std::uint64_t old_address;
  std::uint64_t new_address;
};

void write_redirected(const Redirected& read, const MapKeys& keys, std::uint32_t icrc_of_keys) {
  std::byte* const icrc = read.udp + kIcrcOffset;
  const std::uint32_t change =
      fabric::roce::icrc_change_of_address(read.old_address ^ read.new_address) ^ icrc_of_keys;
  const std::uint32_t old_icrc = load_be<std::uint32_t>(icrc);
  const std::uint32_t new_icrc =
      planted(Bug::icrc_not_updated) ? old_icrc : old_icrc ^ base::swap_bytes(change);
  if (load16(read.udp + kUdpChecksumOffset) != 0) {
    const std::uint64_t of_old =
        halves(~read.old_address) + std::uint32_t{~keys.keyed} + std::uint32_t{~old_icrc};
    const std::uint64_t of_new = halves(read.new_address) + keys.redirect + new_icrc;
    mend_checksum(read.udp, of_old + of_new);
  }
  store_be(read.udp + kAddressOffset, read.new_address);
  store_be(read.udp + kKeyOffset, keys.redirect);
  store_be(icrc, new_icrc);
}

}  // namespace

ReadRequestParts find_read_request(std::span<std::byte> frame) {
  std::byte* const udp = find_udp(frame);
  if (udp == nullptr) return {};
  return {std::span(udp + kUdpBytes, kReadRequestBytes), udp};
}

void PacketFunction::add(const MapKeys& keys, const IndexTables& tables) {
  for (const Map& map : maps_) ESPALIER_ASSERT(map.keys.keyed != keys.keyed);
  maps_.push_back(
      {keys, fabric::roce::icrc_change(0, keys.keyed ^ keys.redirect), IndexLookup(tables)});
}

void PacketFunction::set_address(std::uint32_t keyed_key, const EntryPlace& place,
                                 std::uint64_t address) {
  const auto map = std::ranges::find(maps_, keyed_key, [](const Map& of) { return of.keys.keyed; });
  ESPALIER_ASSERT(map != maps_.end());
  map->lookup.set_address(place, address);
}

const PacketFunction::Map* PacketFunction::find_map(std::uint32_t keyed_key) const {
  for (const Map& map : maps_) {
    if (map.keys.keyed == keyed_key) return &map;
  }
  return nullptr;
}

Processed PacketFunction::redirect(std::uint32_t& key, std::uint64_t& address) const {
  const Map* const map = find_map(key);
  if (map == nullptr) return {Outcome::read_passed, 0};
  const Found found = map->lookup.find(address);
  key = map->keys.redirect;
  address = found.address;
  return {Outcome::redirected, found.sets};
}

Processed PacketFunction::process(std::span<std::byte> frame) const {
  std::byte* const udp = find_udp(frame);
  if (udp == nullptr) return {};
  const Map* const map = find_map(key_of(udp));
  if (map == nullptr) return {Outcome::read_passed, 0};
  const std::uint64_t number = address_of(udp);
  const Found found = map->lookup.find(number);
  write_redirected({udp, number, found.address}, map->keys, map->icrc_of_keys);
  return {Outcome::redirected, found.sets};
}

// --- bursts --------------------------------------------------------------------------------------

/// Requests of one map, and which frames of the burst they are. Nothing of it is set before it is
/// used: to clear it would take as long as some frames.
struct PacketFunction::Batch {
  const Map* map;
  std::size_t count;
  std::array<std::byte*, IndexLookup::kTogether> udp;
  std::array<std::uint64_t, IndexLookup::kTogether> numbers;
  std::array<std::uint32_t, IndexLookup::kTogether> frames;
};

void PacketFunction::redirect_all(Batch& batch, std::span<Processed> done) {
  std::array<Found, IndexLookup::kTogether> found;
  batch.map->lookup.find_together(std::span(batch.numbers).first(batch.count),
                                  std::span(found).first(batch.count));
  const MapKeys keys = batch.map->keys;
  const std::uint32_t icrc_of_keys = batch.map->icrc_of_keys;
  for (std::size_t i = 0; i < batch.count; ++i) {
    write_redirected({batch.udp[i], batch.numbers[i], found[i].address}, keys, icrc_of_keys);
    done[batch.frames[i]] = {Outcome::redirected, found[i].sets};
  }
  batch.count = 0;
}

void PacketFunction::process(std::span<const std::span<std::byte>> frames,
                             std::span<Processed> done) const {
  ESPALIER_ASSERT(done.size() >= frames.size());
  Batch batch;
  batch.map = nullptr;
  batch.count = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    std::byte* const udp = find_udp(frames[i]);
    done[i] = {};
    if (udp == nullptr) continue;
    const Map* const map = find_map(key_of(udp));
    if (map == nullptr) {
      done[i].outcome = Outcome::read_passed;
      continue;
    }
    const bool full = batch.count == IndexLookup::kTogether || map != batch.map;
    if (full && batch.count != 0) redirect_all(batch, done);
    batch.map = map;
    batch.udp[batch.count] = udp;
    batch.numbers[batch.count] = address_of(udp);
    batch.frames[batch.count++] = static_cast<std::uint32_t>(i);
  }
  if (batch.count != 0) redirect_all(batch, done);
}

}  // namespace espalier::dataplane
