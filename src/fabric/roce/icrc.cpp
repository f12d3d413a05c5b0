// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/icrc.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "base/crc32.hpp"
#include "fabric/ethernet.hpp"
#include "fabric/roce/format.hpp"

namespace espalier::fabric::roce {
namespace {

using namespace wire::roce;
using base::crc32_extend;
using base::Crc32Table;
using base::kCrc32Tables;
using wire::kUdpBytes;

constexpr std::size_t kLocalHeader = 8;  // InfiniBand's own, which RoCE has not: all ones
constexpr std::size_t kV4Bytes = 20;
constexpr std::size_t kV6Bytes = 40;
constexpr std::uint8_t kUdpProtocol = 17;
constexpr std::uint8_t kMasked = 0xFF;

/// A number of 16 bits that lies so many bytes before the end of the UDP header.
struct Field {
  Crc32Table high;
  Crc32Table low;
  constexpr explicit Field(unsigned bytes_to_end)
      : high(base::crc32_table(bytes_to_end - 1)), low(base::crc32_table(bytes_to_end - 2)) {}
  [[nodiscard]] std::uint32_t state(std::uint16_t value) const {
    return high[value >> 8] ^ low[value & 0xFF];
  }
};

constexpr Field kV4Length(kV4Bytes + kUdpBytes - 2);
constexpr Field kV4Id(kV4Bytes + kUdpBytes - 4);
constexpr Field kV6Length(kV6Bytes + kUdpBytes - 4);
constexpr Field kUdpLength(kUdpBytes - 4);

/// The headers as they are summed, with lengths and id 0. Returns their bytes.
std::size_t write_masked(std::byte* to, const IpFlow& flow) {
  std::memset(to, kMasked, kLocalHeader);
  std::byte* at = to + kLocalHeader;
  if (flow.source.is_v6) {
    std::memset(at, 0, kV6Bytes);
    base::store_be<std::uint32_t>(at, 0x6FFF'FFFF);
    at[6] = std::byte{kUdpProtocol};
    at[7] = std::byte{kMasked};
    std::memcpy(at + 8, flow.source.bytes.data(), 16);
    std::memcpy(at + 24, flow.destination.bytes.data(), 16);
    at += kV6Bytes;
  } else {
    std::memset(at, 0, kV4Bytes);
    base::store_be<std::uint16_t>(at, 0x45FF);
    at[6] = std::byte{flow.dont_fragment ? std::uint8_t{0x40} : std::uint8_t{0}};
    at[8] = std::byte{kMasked};
    at[9] = std::byte{kUdpProtocol};
    base::store_be<std::uint16_t>(at + 10, 0xFFFF);
    std::memcpy(at + 12, flow.source.bytes.data(), 4);
    std::memcpy(at + 16, flow.destination.bytes.data(), 4);
    at += kV4Bytes;
  }
  base::store_be(at, flow.source_port);
  base::store_be(at + 2, flow.destination_port);
  base::store_be<std::uint16_t>(at + 4, 0);
  base::store_be<std::uint16_t>(at + 6, 0xFFFF);
  return static_cast<std::size_t>(at + kUdpBytes - to);
}

}  // namespace

Icrc::Icrc(const IpFlow& flow) : is_v6_(flow.source.is_v6) {
  ESPALIER_ASSERT(flow.source.is_v6 == flow.destination.is_v6);
  std::byte masked[kLocalHeader + kV6Bytes + kUdpBytes];
  const std::size_t bytes = write_masked(masked, flow);
  seed_ = crc32_extend(base::kCrc32Start, std::span(masked).first(bytes));
}

std::uint32_t Icrc::begin(std::size_t ib_bytes, std::span<const std::byte> first,
                          std::uint16_t ip_id) const {
  ESPALIER_ASSERT(ib_bytes <= kIbBytesMax && first.size() >= sizeof(BthBytes));
  const auto udp_length = static_cast<std::uint16_t>(ib_bytes + kUdpBytes);
  std::uint32_t state = seed_ ^ kUdpLength.state(udp_length);
  if (is_v6_) {
    state ^= kV6Length.state(udp_length);
  } else {
    state ^= kV4Length.state(static_cast<std::uint16_t>(udp_length + kV4Bytes));
    state ^= kV4Id.state(ip_id);
  }
  // The bytes are not ours to change, so what holds the masked one is summed from a copy. Nearly
  // every packet has a step of 16 bytes there.
  std::byte masked[16];
  std::size_t copied = sizeof(BthBytes);
  if (first.size() >= sizeof masked) {
    std::memcpy(masked, first.data(), sizeof masked);
    copied = sizeof masked;
  } else {
    std::memcpy(masked, first.data(), sizeof(BthBytes));
  }
  masked[offsetof(BthBytes, congestion)] = std::byte{kMasked};
  state = crc32_extend(state, std::span(masked).first(copied));
  return crc32_extend(state, first.subspan(copied));
}

std::uint32_t Icrc::of(std::span<const std::byte> ib, std::uint16_t ip_id) const {
  ESPALIER_ASSERT(ib.size() >= sizeof(BthBytes) + kIcrcBytes);
  return base::crc32_end(begin(ib.size(), ib.first(ib.size() - kIcrcBytes), ip_id));
}

void Icrc::seal(std::span<std::byte> ib, std::uint16_t ip_id) const {
  base::store_le(ib.data() + ib.size() - kIcrcBytes, of(ib, ip_id));
}

bool Icrc::matches(std::span<const std::byte> ib, std::uint16_t ip_id) const {
  if (ib.size() < sizeof(BthBytes) + kIcrcBytes || ib.size() > kIbBytesMax) return false;
  return base::load_le<std::uint32_t>(ib.data() + ib.size() - kIcrcBytes) == of(ib, ip_id);
}

std::uint32_t icrc_change(std::uint64_t address_change, std::uint32_t key_change) {
  std::uint32_t change = icrc_change_of_address(address_change);
  // The length, 4 bytes that stay, lies between the key and the end.
  for (unsigned i = 0; i < 4; ++i) {
    change ^= kCrc32Tables[4 + i][static_cast<std::uint8_t>(key_change >> (8 * i))];
  }
  return change;
}

void redirect_read(std::span<std::byte> ib, std::uint64_t address, std::uint32_t key) {
  ESPALIER_ASSERT(ib.size() == wire::roce::kReadRequestBytes);
  std::byte* const reth = ib.data() + sizeof(BthBytes);
  std::byte* const at_key = reth + offsetof(RethBytes, key);
  std::byte* const icrc = reth + sizeof(RethBytes);
  const std::uint32_t change = icrc_change(base::load_be<std::uint64_t>(reth) ^ address,
                                           base::load_be<std::uint32_t>(at_key) ^ key);
  base::store_be(reth, address);
  base::store_be(at_key, key);
  base::store_le(icrc, base::load_le<std::uint32_t>(icrc) ^ change);
}

}  // namespace espalier::fabric::roce
