// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/packet.hpp"

#include <array>
#include <cstring>

#include "base/assert.hpp"

namespace espalier::fabric::roce {
namespace {

using namespace wire::roce;
using base::load_be;
using base::store_be;

constexpr Parts make_parts(std::uint8_t bits) {
  std::size_t bytes = sizeof(BthBytes);
  if (bits & Parts::kDeth) bytes += sizeof(DethBytes);
  if (bits & Parts::kReth) bytes += sizeof(RethBytes);
  if (bits & Parts::kAtomic) bytes += sizeof(AtomicEthBytes);
  if (bits & Parts::kAeth) bytes += sizeof(AethBytes);
  if (bits & Parts::kAtomicAck) bytes += sizeof(AtomicAckEthBytes);
  if (bits & Parts::kImmediate) bytes += sizeof(ImmDtBytes);
  return {bits, static_cast<std::uint8_t>(bytes)};
}

constexpr Parts make_parts(PacketOpcode opcode) {
  using enum PacketOpcode;
  switch (opcode) {
    case send_first:
    case send_middle:
    case send_last:
    case send_only:
    case write_middle:
    case write_last:
    case read_response_middle: return make_parts(Parts::kPayload);
    case send_last_immediate:
    case send_only_immediate:
    case write_last_immediate: return make_parts(Parts::kPayload | Parts::kImmediate);
    case write_first:
    case write_only: return make_parts(Parts::kPayload | Parts::kReth);
    case write_only_immediate:
      return make_parts(Parts::kPayload | Parts::kReth | Parts::kImmediate);
    case read_request: return make_parts(Parts::kReth);
    case read_response_first:
    case read_response_last:
    case read_response_only: return make_parts(Parts::kPayload | Parts::kAeth);
    case acknowledge: return make_parts(Parts::kAeth);
    case atomic_acknowledge: return make_parts(Parts::kAeth | Parts::kAtomicAck);
    case compare_swap:
    case fetch_add: return make_parts(Parts::kAtomic);
    case datagram_send_only: return make_parts(Parts::kPayload | Parts::kDeth);
  }
  return {};
}

constexpr std::array<Parts, 256> kParts = [] {
  std::array<Parts, 256> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = make_parts(static_cast<PacketOpcode>(i));
  return all;
}();

/// Waits in units of 10 us, by timer.
constexpr std::array<std::uint32_t, 32> kRnrWaits = {
    65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
    48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
    2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

constexpr std::uint8_t byte_at(const std::byte* at) { return std::to_integer<std::uint8_t>(*at); }

/// Fills it where it lies: a copy of fields just written one by one would wait for them.
void load_bth(const std::byte* at, Bth& bth) {
  const std::uint8_t flags = byte_at(at + offsetof(BthBytes, flags));
  const std::uint8_t congestion = byte_at(at + offsetof(BthBytes, congestion));
  bth.opcode = static_cast<PacketOpcode>(byte_at(at));
  bth.solicited = (flags & kBthSolicited) != 0;
  bth.migrated = (flags & kBthMigrated) != 0;
  bth.pad = flags >> kBthPadShift & kBthPadMask;
  bth.partition = load_be<std::uint16_t>(at + offsetof(BthBytes, partition));
  bth.forward_congestion = (congestion & kBthForwardCongestion) != 0;
  bth.backward_congestion = (congestion & kBthBackwardCongestion) != 0;
  // The byte before each of these has 8 bits more, so one load will do.
  bth.destination = load_be<std::uint32_t>(at + offsetof(BthBytes, congestion)) & kMask24;
  const auto last = load_be<std::uint32_t>(at + offsetof(BthBytes, acknowledge));
  bth.ask_acknowledge = last >> 31 != 0;
  bth.psn = last & kMask24;
}

void store_bth(std::byte* to, const Bth& bth, std::uint8_t pad) {
  const unsigned flags = (bth.solicited ? kBthSolicited : 0u) | (bth.migrated ? kBthMigrated : 0u) |
                         (unsigned{pad} & kBthPadMask) << kBthPadShift | kTransportVersion;
  const unsigned congestion = (bth.forward_congestion ? kBthForwardCongestion : 0u) |
                              (bth.backward_congestion ? kBthBackwardCongestion : 0u);
  const std::uint32_t ask = bth.ask_acknowledge ? kBthAskAcknowledge : 0u;
  store_be<std::uint32_t>(
      to, std::uint32_t{static_cast<std::uint8_t>(bth.opcode)} << 24 | flags << 16 | bth.partition);
  store_be<std::uint32_t>(to + offsetof(BthBytes, congestion),
                          congestion << 24 | (bth.destination & kMask24));
  store_be<std::uint32_t>(to + offsetof(BthBytes, acknowledge), ask << 24 | (bth.psn & kMask24));
}

/// Reads what stands between the BTH and the payload.
void load_extensions(const std::byte* at, Parts parts, Headers& to) {
  if (parts.has(Parts::kDeth)) {
    to.deth = {load_be<std::uint32_t>(at), load_be24(at + offsetof(DethBytes, source))};
    at += sizeof(DethBytes);
  }
  if (parts.has(Parts::kReth)) {
    to.reth = {load_be<std::uint64_t>(at), load_be<std::uint32_t>(at + offsetof(RethBytes, key)),
               load_be<std::uint32_t>(at + offsetof(RethBytes, length))};
    at += sizeof(RethBytes);
  }
  if (parts.has(Parts::kAtomic)) {
    to.atomic = {load_be<std::uint64_t>(at),
                 load_be<std::uint32_t>(at + offsetof(AtomicEthBytes, key)),
                 load_be<std::uint64_t>(at + offsetof(AtomicEthBytes, swap_or_add)),
                 load_be<std::uint64_t>(at + offsetof(AtomicEthBytes, compare))};
    at += sizeof(AtomicEthBytes);
  }
  if (parts.has(Parts::kAeth)) {
    to.aeth = {byte_at(at), load_be<std::uint32_t>(at) & kMask24};
    at += sizeof(AethBytes);
  }
  if (parts.has(Parts::kAtomicAck)) {
    to.atomic_ack = {load_be<std::uint64_t>(at)};
    at += sizeof(AtomicAckEthBytes);
  }
  if (parts.has(Parts::kImmediate)) to.immediate = {load_be<std::uint32_t>(at)};
}

void store_extensions(std::byte* to, Parts parts, const Headers& from) {
  if (parts.has(Parts::kDeth)) {
    store_be(to, from.deth.queue_key);
    store_be(to + offsetof(DethBytes, reserved), std::uint8_t{0});
    store_be24(to + offsetof(DethBytes, source), from.deth.source);
    to += sizeof(DethBytes);
  }
  if (parts.has(Parts::kReth)) {
    store_be(to, from.reth.address);
    store_be(to + offsetof(RethBytes, key), from.reth.key);
    store_be(to + offsetof(RethBytes, length), from.reth.length);
    to += sizeof(RethBytes);
  }
  if (parts.has(Parts::kAtomic)) {
    store_be(to, from.atomic.address);
    store_be(to + offsetof(AtomicEthBytes, key), from.atomic.key);
    store_be(to + offsetof(AtomicEthBytes, swap_or_add), from.atomic.swap_or_add);
    store_be(to + offsetof(AtomicEthBytes, compare), from.atomic.compare);
    to += sizeof(AtomicEthBytes);
  }
  if (parts.has(Parts::kAeth)) {
    store_be(to, std::uint32_t{from.aeth.syndrome} << 24 | (from.aeth.msn & kMask24));
    to += sizeof(AethBytes);
  }
  if (parts.has(Parts::kAtomicAck)) {
    store_be(to, from.atomic_ack.original);
    to += sizeof(AtomicAckEthBytes);
  }
  if (parts.has(Parts::kImmediate)) store_be(to, from.immediate.immediate);
}

std::size_t write_with_pad(std::byte* to, const Headers& headers, std::uint8_t pad) {
  const Parts parts = kParts[static_cast<std::uint8_t>(headers.bth.opcode)];
  ESPALIER_ASSERT(parts.known());
  store_bth(to, headers.bth, pad);
  store_extensions(to + sizeof(BthBytes), parts, headers);
  return parts.header_bytes;
}

}  // namespace

Parts parts_of(PacketOpcode opcode) { return kParts[static_cast<std::uint8_t>(opcode)]; }

std::optional<Packet> parse(std::span<const std::byte> ib) {
  const std::size_t size = ib.size();
  if (size < sizeof(BthBytes) + kIcrcBytes || size % 4 != 0) return std::nullopt;
  const Parts parts = kParts[byte_at(ib.data())];
  const std::uint8_t flags = byte_at(ib.data() + offsetof(BthBytes, flags));
  if (!parts.known() || (flags & kBthVersionMask) != kTransportVersion) return std::nullopt;
  if (size < parts.header_bytes + kIcrcBytes) return std::nullopt;
  const std::size_t padded = size - parts.header_bytes - kIcrcBytes;

  const std::uint8_t pad = flags >> kBthPadShift & kBthPadMask;
  if (pad > padded || (padded != 0 && !parts.has(Parts::kPayload))) return std::nullopt;

  // Every way on returns this very object, so that it is made where the caller wants it.
  std::optional<Packet> result(std::in_place);
  Packet& packet = *result;
  load_bth(ib.data(), packet.bth);
  load_extensions(ib.data() + sizeof(BthBytes), parts, packet);
  packet.payload = ib.subspan(parts.header_bytes, padded - pad);
  packet.icrc = base::load_le<std::uint32_t>(ib.data() + size - kIcrcBytes);
  return result;
}

std::size_t packet_bytes(PacketOpcode opcode, std::size_t payload_bytes) {
  return parts_of(opcode).header_bytes + payload_bytes + pad_of(payload_bytes) + kIcrcBytes;
}

std::size_t write_headers(std::byte* to, const Headers& headers) {
  return write_with_pad(to, headers, headers.bth.pad);
}

std::size_t write_packet(std::byte* to, const Headers& headers,
                         std::span<const std::byte> payload) {
  ESPALIER_ASSERT(payload.empty() || parts_of(headers.bth.opcode).has(Parts::kPayload));
  const std::uint8_t pad = pad_of(payload.size());
  std::size_t bytes = write_with_pad(to, headers, pad);
  if (!payload.empty()) std::memmove(to + bytes, payload.data(), payload.size());
  bytes += payload.size();
  std::memset(to + bytes, 0, pad);
  return bytes + pad;
}

std::uint64_t rnr_timer_ns(std::uint8_t timer) {
  timer &= kSyndromeValueMask;
  return 10'000 * std::uint64_t{kRnrWaits[timer]};
}

std::uint8_t rnr_timer(std::uint64_t at_least_ns) {
  for (std::uint8_t timer = 1; timer < kRnrWaits.size(); ++timer) {
    if (rnr_timer_ns(timer) >= at_least_ns) return timer;
  }
  return 0;
}

}  // namespace espalier::fabric::roce
