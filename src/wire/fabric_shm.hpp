// SPDX-License-Identifier: Apache-2.0
// The protocol between the two ends of a connection in the fabric's transport for processes of one
// machine: packets on a UNIX socket, and the shared memory through which messages go.
//
// Neither end trusts the other. What one can write it can write at any time, so each word and each
// header is copied once, and checked in the copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace espalier::wire {

inline constexpr std::uint64_t kFabricMagic = 0x4D48534642505345;  // "ESPBFSHM", low byte first
inline constexpr std::uint32_t kFabricFormat = 1;

/// What a packet is: its first word.
enum class FabricPacket : std::uint32_t {
  invalid = 0,
  hello = 1,    // the connecting side's first
  welcome = 2,  // the answer to it
  ask = 3,      // for the memory behind a key
  answer = 4,   // to that
  wake = 5,     // you said that you sleep, and there is something to do
  void_answer = 6,  // to an `ask`: the key is void, so there is no memory, only zeros to be read
};

/// With it comes the memory that holds the sender's good keys, to be read.
struct FabricHello {
  std::uint32_t packet;
  std::uint32_t format;
  std::uint64_t magic;
  std::uint32_t data_bytes;
  std::uint8_t data[56];
  std::uint32_t reserved;
};
static_assert(sizeof(FabricHello) == 80 && offsetof(FabricHello, data) == 20);
static_assert(std::has_unique_object_representations_v<FabricHello>);

/// With it come, if `refused` is 0: the connection's memory, to be read and written, and the memory
/// that holds the sender's good keys, to be read.
struct FabricWelcome {
  std::uint32_t packet;
  std::uint32_t format;
  std::uint64_t magic;
  std::uint32_t refused;
  std::uint32_t ring_slots;  // of each ring
  std::uint32_t data_bytes;
  std::uint8_t data[184];
  std::uint32_t reserved;
};
static_assert(sizeof(FabricWelcome) == 216 && offsetof(FabricWelcome, data) == 28);
static_assert(std::has_unique_object_representations_v<FabricWelcome>);

/// An `ask`, or a `wake` with key 0.
struct FabricNote {
  std::uint32_t packet;
  std::uint32_t key;
};
static_assert(sizeof(FabricNote) == 8 && std::has_unique_object_representations_v<FabricNote>);

/// With an `answer` comes, if `status` is 0, a descriptor that has the rights which were granted.
/// With a `void_answer` comes none; `status` and `descriptor_offset` are 0 in it.
struct FabricAnswer {
  std::uint32_t packet;
  std::uint32_t key;
  std::uint32_t status;  // why there is none, as the fabric's Status
  std::uint32_t rights;  // as the fabric's RemoteRights, and in an `answer` the two flags below
  std::uint64_t base;    // the address of its first byte
  std::uint64_t bytes;
  std::uint64_t descriptor_offset;  // where it begins in the memory
};
static_assert(sizeof(FabricAnswer) == 40 && offsetof(FabricAnswer, base) == 16);
static_assert(std::has_unique_object_representations_v<FabricAnswer>);

/// The region's memory keeps its bytes without power.
inline constexpr std::uint32_t kFabricPersistent = 1u << 8;
/// What is written there is to be stored past the cache, and fenced.
inline constexpr std::uint32_t kFabricPastCache = 1u << 9;

/// The flow-control state of one end. Only that end writes here, but for `sleeping`.
struct FabricSide {
  std::uint64_t credit;   // lines of the ring towards it that were copied out
  std::uint64_t done;     // messages that were taken wholly
  std::uint64_t starved;  // so many messages, the last of which found no receive
  std::uint32_t failure;  // why it did not take the message behind `done`: a Status
  std::uint32_t ended;    // 1 + the Status for which it ended the connection
  std::uint64_t reserved[4];
  std::uint32_t sleeping;  // 1: wake it; the end that means to do that makes it 0
  std::uint32_t reserved_sleeping[15];
};
static_assert(sizeof(FabricSide) == 128 && offsetof(FabricSide, ended) == 28);
static_assert(offsetof(FabricSide, sleeping) == 64);
static_assert(std::has_unique_object_representations_v<FabricSide>);

/// The first page of a connection's memory. The rings follow: from the side that connected, then
/// from the one that accepted.
///
///   0       8        12           16    128               256              384
///   +-------+--------+------------+-----+-----------------+----------------+
///   | magic | format | ring lines | 0   | connecting side | accepting side |
///   +-------+--------+------------+-----+-----------------+----------------+
struct FabricPage {
  std::uint64_t magic;
  std::uint32_t format;
  std::uint32_t ring_slots;
  std::uint64_t reserved[14];
  FabricSide sides[2];
};
static_assert(sizeof(FabricPage) == 384 && offsetof(FabricPage, sides) == 128);
static_assert(std::has_unique_object_representations_v<FabricPage>);

inline constexpr std::uint32_t kFabricPageBytes = 4096;
inline constexpr std::uint32_t kFabricSlotBytes = 64;
inline constexpr std::uint32_t kFabricSlotsMin = 64;
inline constexpr std::uint32_t kFabricSlotsMax = 1u << 16;

/// What a piece of a message is, or begins.
enum class FabricPiece : std::uint8_t {
  invalid = 0,
  send = 1,
  send_immediate = 2,
  write = 3,
  write_immediate = 4,
  more = 5,  // of the message that has begun
};

/// The head of a piece. A ring is a power of two of lines of 64 bytes; line number n, counted from
/// the ring's beginning of time, lies at n % lines. A piece begins with a line of its own, and its
/// payload follows the header directly, from line to line and over the ring's end:
///
///   0          4       8      9   12          16              20    24       32
///   +----------+-------+------+---+-----------+---------------+-----+--------+----------
///   | sequence | bytes | kind | 0 | immediate | message bytes | key | remote | payload ..
///   +----------+-------+------+---+-----------+---------------+-----+--------+----------
///
/// The first eight bytes are written last. The sequence word shows the reader that the piece is
/// complete: until then the word in its place is 0, for the writer clears the line behind a piece
/// before it publishes the piece.
struct FabricPieceHead {
  std::uint32_t sequence;  // fabric_sequence() of its line
  std::uint32_t bytes;     // of payload in this piece
  std::uint8_t kind;
  std::uint8_t reserved[3];
  std::uint32_t immediate;      // these four: in a message's first piece only
  std::uint32_t message_bytes;  // all its pieces together
  std::uint32_t key;
  std::uint64_t remote;
};
static_assert(sizeof(FabricPieceHead) == 32 && offsetof(FabricPieceHead, remote) == 24);
static_assert(std::has_unique_object_representations_v<FabricPieceHead>);

/// The sequence word of a piece that begins in line number `line`; never 0.
[[nodiscard]] constexpr std::uint32_t fabric_sequence(std::uint64_t slot) {
  return static_cast<std::uint32_t>(slot << 1) | 1;
}

/// Lines of a piece with so many bytes of payload.
[[nodiscard]] constexpr std::uint32_t fabric_slots(std::uint32_t payload_bytes) {
  constexpr std::uint32_t kHead = sizeof(FabricPieceHead);
  return (kHead + payload_bytes + kFabricSlotBytes - 1) / kFabricSlotBytes;
}

/// The most payload in one piece: with its head a quarter of the ring.
[[nodiscard]] constexpr std::uint32_t fabric_piece_bytes_max(std::uint32_t ring_slots) {
  return ring_slots / 4 * kFabricSlotBytes - std::uint32_t{sizeof(FabricPieceHead)};
}

[[nodiscard]] constexpr bool fabric_slots_valid(std::uint32_t slots) {
  return slots >= kFabricSlotsMin && slots <= kFabricSlotsMax && (slots & (slots - 1)) == 0;
}

/// Where the ring of a side begins, and how long the memory is.
[[nodiscard]] constexpr std::uint64_t fabric_ring(std::uint32_t side, std::uint32_t slots) {
  return kFabricPageBytes + std::uint64_t{side} * slots * kFabricSlotBytes;
}
[[nodiscard]] constexpr std::uint64_t fabric_channel_bytes(std::uint32_t slots) {
  return fabric_ring(2, slots);
}

}  // namespace espalier::wire
