// SPDX-License-Identifier: Apache-2.0
// RoCEv2 packets: from bytes to numbers, checked, and back. A packet here is what UDP carries, from
// the BTH to the ICRC; fabric/roce/format.hpp draws it.
//
// What is checked is whether the bytes are a packet at all. The engine of a queue pair checks
// order, length against the MTU, keys and partition; icrc.hpp checks the ICRC, since that depends
// on the IP header.
//
// Nothing here allocates. Numbers wider than their field lose the bits above it.
// Thread: plain values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.hpp"
#include "fabric/roce/format.hpp"

namespace espalier::fabric::roce {

using wire::roce::NakCode;
using wire::roce::PacketOpcode;

struct Bth {
  PacketOpcode opcode = PacketOpcode::send_only;
  bool solicited = false;
  bool migrated = true;  // as of a pair that never moves to another path
  std::uint8_t pad = 0;  // bytes behind the payload: pad_of()
  std::uint16_t partition = wire::roce::kDefaultPartition;
  bool forward_congestion = false;
  bool backward_congestion = false;
  bool ask_acknowledge = false;
  std::uint32_t destination = 0;  // queue pair, 24 bits
  std::uint32_t psn = 0;          // 24 bits
  friend constexpr bool operator==(const Bth&, const Bth&) = default;
};

struct Reth {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  std::uint32_t length = 0;
  friend constexpr bool operator==(const Reth&, const Reth&) = default;
};

struct AtomicEth {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  std::uint64_t swap_or_add = 0;
  std::uint64_t compare = 0;
  friend constexpr bool operator==(const AtomicEth&, const AtomicEth&) = default;
};

struct Aeth {
  enum class Kind : std::uint8_t { ack, rnr, reserved, nak };

  std::uint8_t syndrome = 0;
  std::uint32_t msn = 0;  // messages completed, 24 bits

  [[nodiscard]] constexpr Kind kind() const {
    return static_cast<Kind>((syndrome & wire::roce::kSyndromeKindMask) >> 5);
  }
  /// Credits, timer or NakCode, as the kind says. A NAK may carry a code that is not in NakCode.
  [[nodiscard]] constexpr std::uint8_t value() const {
    return syndrome & wire::roce::kSyndromeValueMask;
  }

  static constexpr Aeth ack(std::uint32_t msn,
                            std::uint8_t credits = wire::roce::kCreditsUnlimited) {
    return {static_cast<std::uint8_t>(credits & wire::roce::kSyndromeValueMask), msn};
  }
  /// Receiver not ready. `timer`: rnr_timer().
  static constexpr Aeth rnr(std::uint32_t msn, std::uint8_t timer) {
    return {static_cast<std::uint8_t>(wire::roce::kSyndromeRnr |
                                      (timer & wire::roce::kSyndromeValueMask)),
            msn};
  }
  static constexpr Aeth nak(std::uint32_t msn, NakCode code) {
    return {static_cast<std::uint8_t>(wire::roce::kSyndromeNak | static_cast<std::uint8_t>(code)),
            msn};
  }
  friend constexpr bool operator==(const Aeth&, const Aeth&) = default;
};

struct AtomicAckEth {
  std::uint64_t original = 0;
  friend constexpr bool operator==(const AtomicAckEth&, const AtomicAckEth&) = default;
};

struct ImmDt {
  std::uint32_t immediate = 0;
  friend constexpr bool operator==(const ImmDt&, const ImmDt&) = default;
};

struct Deth {
  std::uint32_t queue_key = 0;
  std::uint32_t source = 0;  // queue pair, 24 bits
  friend constexpr bool operator==(const Deth&, const Deth&) = default;
};

/// The headers of an opcode.
struct Parts {
  std::uint8_t bits = 0;
  std::uint8_t header_bytes = 0;  // BTH and what follows it; 0: no opcode of ours

  static constexpr std::uint8_t kDeth = 1;
  static constexpr std::uint8_t kReth = 2;
  static constexpr std::uint8_t kAtomic = 4;
  static constexpr std::uint8_t kAeth = 8;
  static constexpr std::uint8_t kAtomicAck = 16;
  static constexpr std::uint8_t kImmediate = 32;
  static constexpr std::uint8_t kPayload = 64;

  [[nodiscard]] constexpr bool known() const { return header_bytes != 0; }
  [[nodiscard]] constexpr bool has(std::uint8_t part) const { return (bits & part) != 0; }
};
[[nodiscard]] Parts parts_of(PacketOpcode opcode);

/// BTH and those of the others that the opcode has; the rest is left at its default. The braces let
/// a caller name only the members that it sets.
struct Headers {
  Bth bth{};
  Deth deth{};
  Reth reth{};
  AtomicEth atomic{};
  Aeth aeth{};
  AtomicAckEth atomic_ack{};
  ImmDt immediate{};
  friend constexpr bool operator==(const Headers&, const Headers&) = default;
};

/// A packet, whose payload lies in the bytes that were parsed.
struct Packet : Headers {
  std::span<const std::byte> payload;  // without the pad
  std::uint32_t icrc = 0;              // as received; not checked yet
};

/// Reads a packet from a UDP payload. Nothing if it is none: too short or not in words of 4 bytes,
/// of another transport version, of an opcode that is not ours, with a payload where the opcode has
/// none, or with more pad than there are bytes. Reserved bits may be anything.
/// Cost: some nanoseconds.
[[nodiscard]] std::optional<Packet> parse(std::span<const std::byte> ib);

/// Pad bytes behind a payload of this length.
[[nodiscard]] constexpr std::uint8_t pad_of(std::size_t payload_bytes) {
  return static_cast<std::uint8_t>((0 - payload_bytes) & wire::roce::kBthPadMask);
}

/// Bytes of a packet with a payload of this length, pad and ICRC counted.
[[nodiscard]] std::size_t packet_bytes(PacketOpcode opcode, std::size_t payload_bytes);

/// Writes BTH and what the opcode has behind it. Returns the bytes written, at most
/// wire::roce::kHeadersBytesMax. Requires: an opcode of ours, and room.
std::size_t write_headers(std::byte* to, const Headers& headers);

/// Writes headers (with the pad that the payload wants), payload and pad. Returns the bytes
/// written, behind which the ICRC is yet to come: packet_bytes() less 4. Requires: as
/// write_headers(); a payload only where the opcode has one. The payload may lie where it belongs
/// already.
std::size_t write_packet(std::byte* to, const Headers& headers, std::span<const std::byte> payload);

inline void store_be24(std::byte* to, std::uint32_t value) {
  to[0] = static_cast<std::byte>(value >> 16);
  to[1] = static_cast<std::byte>(value >> 8);
  to[2] = static_cast<std::byte>(value);
}
[[nodiscard]] inline std::uint32_t load_be24(const std::byte* at) {
  return std::to_integer<std::uint32_t>(at[0]) << 16 | std::to_integer<std::uint32_t>(at[1]) << 8 |
         std::to_integer<std::uint32_t>(at[2]);
}

// Packet sequence numbers go round after 2^24.

[[nodiscard]] constexpr std::uint32_t psn_plus(std::uint32_t psn, std::uint32_t packets) {
  return (psn + packets) & wire::roce::kMask24;
}
/// How far `to` is ahead of `from`: -2^23 .. 2^23 - 1.
[[nodiscard]] constexpr std::int32_t psn_distance(std::uint32_t from, std::uint32_t to) {
  return static_cast<std::int32_t>((to - from) << 8) >> 8;
}

/// How long the peer is to wait after "receiver not ready" [IBTA table 45]. Uses the low 5 bits.
[[nodiscard]] std::uint64_t rnr_timer_ns(std::uint8_t timer);
/// The timer of the shortest wait that is not shorter, else of the longest, 655.36 ms.
[[nodiscard]] std::uint8_t rnr_timer(std::uint64_t at_least_ns);

}  // namespace espalier::fabric::roce
