// SPDX-License-Identifier: Apache-2.0
// The format of rings: slots that carry their own arrival notification.
//
// A ring is a power of two of slots of 64 bytes. Slot number n, counted from the ring's beginning
// of time, lies at n % slots and begins with a sequence word, the low 32 bits of n + 1. A slot's
// old word is that of one lap before, so a reader knows by one word whether the slot has come, and
// nothing needs to be reset. A message is a run of slots: the first holds 60 bytes of it behind the
// sequence word, and so does each that follows.
//
//   0          4                                                  64
//   +----------+---------------------------------------------------+
//   | sequence | 60 bytes of a message                              |
//   +----------+---------------------------------------------------+
//
// So the payload is the notification, slots may arrive in any order as long as each arrives whole
// (or its sequence word last), and a message is one write, however long it is: there is no second
// word to publish. [RAMBDA §III-A] resets each entry instead, which doubles the writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace espalier::wire {

inline constexpr std::uint32_t kRingSlotBytes = 64;
inline constexpr std::uint32_t kRingSlotPayload = 60;
inline constexpr std::uint32_t kRingSlotsMin = 64;
inline constexpr std::uint32_t kRingSlotsMax = 1u << 16;

/// The sequence word of slot number `slot`.
[[nodiscard]] constexpr std::uint32_t sequence_of(std::uint64_t slot) {
  return static_cast<std::uint32_t>(slot + 1);
}

/// Slots of a message of so many bytes, the first sequence word counted, the others not.
[[nodiscard]] constexpr std::uint32_t slots_of(std::uint32_t message_bytes) {
  return message_bytes <= kRingSlotBytes
             ? 1
             : 1 + (message_bytes - kRingSlotBytes + kRingSlotPayload - 1) / kRingSlotPayload;
}

inline constexpr std::uint64_t kConnectionMagic = 0x4E4F43524C505345;  // "ESPLRCON", low byte first
inline constexpr std::uint32_t kConnectionFormat = 1;
inline constexpr std::uint32_t kResponseRingsMax = 16;

/// A client's state of one of its response rings, on a cache line of its own.
struct ResponseSide {
  std::uint64_t credit;    // slots that were copied out
  std::uint32_t sleeping;  // 1: the next writer of the ring wakes the reader
  std::uint32_t reserved[13];
};
static_assert(sizeof(ResponseSide) == 64 && offsetof(ResponseSide, sleeping) == 8);
static_assert(std::has_unique_object_representations_v<ResponseSide>);

/// The first page of a connection's memory; the request ring follows, then the response rings.
///
///   0       8        12              16               20               24       64
///   +-------+--------+---------------+----------------+----------------+--------+
///   | magic | format | request slots | response slots | response rings | 0      |
///   +-------+--------+---------------+----------------+----------------+--------+
///   64               72              128                                  1152
///   +----------------+---------------+------------------------------------+
///   | request credit | 0             | response sides, 64 bytes each      |
///   +----------------+---------------+------------------------------------+
///
/// The node writes the first 128 bytes, the client the rest of the page. Neither trusts what the
/// other can write, nor reads back what it wrote itself.
struct ConnectionPage {
  std::uint64_t magic;
  std::uint32_t format;
  std::uint32_t request_slots;
  std::uint32_t response_slots;  // of each response ring
  std::uint32_t response_rings;
  std::uint64_t reserved[5];
  std::uint64_t request_credit;  // slots of the request ring that were copied out
  std::uint64_t reserved_credit[7];
  ResponseSide responses[kResponseRingsMax];
};
static_assert(sizeof(ConnectionPage) == 1152);
static_assert(offsetof(ConnectionPage, request_credit) == 64);
static_assert(offsetof(ConnectionPage, responses) == 128);
static_assert(std::has_unique_object_representations_v<ConnectionPage>);
inline constexpr std::uint32_t kConnectionPageBytes = 4096;

/// Where the parts of a connection's memory lie.
struct ConnectionLayout {
  std::uint32_t request_slots = 0;
  std::uint32_t response_slots = 0;
  std::uint32_t response_rings = 0;

  [[nodiscard]] constexpr std::uint64_t requests() const { return kConnectionPageBytes; }
  [[nodiscard]] constexpr std::uint64_t responses(std::uint32_t ring) const {
    return requests() + std::uint64_t{request_slots} * kRingSlotBytes +
           std::uint64_t{ring} * response_slots * kRingSlotBytes;
  }
  [[nodiscard]] constexpr std::uint64_t bytes() const { return responses(response_rings); }
  [[nodiscard]] constexpr std::uint64_t response_side(std::uint32_t ring) const {
    return offsetof(ConnectionPage, responses) + std::uint64_t{ring} * sizeof(ResponseSide);
  }
  /// Whether rings of these sizes can be.
  [[nodiscard]] constexpr bool valid() const {
    const auto ring = [](std::uint32_t slots) {
      return slots >= kRingSlotsMin && slots <= kRingSlotsMax && (slots & (slots - 1)) == 0;
    };
    return ring(request_slots) && ring(response_slots) && response_rings >= 1 &&
           response_rings <= kResponseRingsMax;
  }
  friend constexpr bool operator==(const ConnectionLayout&, const ConnectionLayout&) = default;
};

inline constexpr std::uint64_t kNodePageMagic = 0x45444F4E4C505345;  // "ESPLNODE", low byte first
inline constexpr std::uint32_t kWorkersMax = 62;

/// One worker of a node, on a cache line of its own.
struct WorkerLine {
  std::uint32_t sleeping;  // 1: a client that writes a request for it wakes it
  std::uint32_t reserved[15];
};
static_assert(sizeof(WorkerLine) == 64);

/// What a node publishes to all its clients, which can only read it.
struct NodePage {
  std::uint64_t magic;
  std::uint32_t format;
  std::uint32_t flags;    // kNodeAsymmetric
  std::uint64_t node_id;  // drawn anew at each start
  std::uint64_t reserved[5];
  std::uint64_t reserved_line[8];
  WorkerLine workers[kWorkersMax];
};
static_assert(sizeof(NodePage) == 4096 && offsetof(NodePage, workers) == 128);
static_assert(std::has_unique_object_representations_v<NodePage>);

/// The side that goes to sleep uses heavy barriers, so that the sides that wake need only light
/// ones.
inline constexpr std::uint32_t kNodeAsymmetric = 1;

/// Doorbells: one word for each ring, the low half of the slot number behind the last message.
/// A page of them belongs to the clients of one user.
inline constexpr std::uint32_t kDoorbellBytes = 4;
inline constexpr std::uint32_t kDoorbellPageBytes = 4096;
inline constexpr std::uint32_t kDoorbellsPerPage = kDoorbellPageBytes / kDoorbellBytes;

}  // namespace espalier::wire
