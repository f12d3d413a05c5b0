// SPDX-License-Identifier: Apache-2.0
// The protocol between the two ends of a connection in the fabric's transport over libfabric:
// frames, each one message of the provider, and in each any number of records.
//
//   0       4       5   8       12  16     24
//   +-------+-------+---+-------+---+------+--------+--------+-----
//   | bytes | flags | 0 | taken | 0 | done | record | record | ...
//   +-------+-------+---+-------+---+------+--------+--------+-----
//
// Flow control: an end may have so many frames in flight as the other has room for, and so many
// bytes of requests as the other reserves for those that it cannot execute yet. Each frame returns
// the credits freed since the last; a frame without a record does nothing else.
//
// Neither end trusts the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace espalier::wire::ofi {

inline constexpr std::uint64_t kMagic = 0x49464F4642505345;  // "ESPBFOFI", low byte first
inline constexpr std::uint32_t kFormat = 1;

inline constexpr std::uint32_t kFrameBytesMax = 8192;
/// Frames that an end has room for.
inline constexpr std::uint32_t kFrames = 16;
/// Bytes of records with requests that may have been sent and are not done.
inline constexpr std::uint32_t kWindowBytes = kFrames * kFrameBytesMax;

/// What begins a frame.
struct FrameHead {
  std::uint32_t bytes;  // of the frame, with this
  std::uint8_t flags;
  std::uint8_t reserved[3];
  std::uint32_t taken;  // frames of the other end that were taken, counted from the beginning
  std::uint32_t reserved_taken;
  std::uint64_t done;  // bytes of the other end's requests that were done, likewise
};
static_assert(sizeof(FrameHead) == 24 && offsetof(FrameHead, taken) == 8);
static_assert(offsetof(FrameHead, done) == 16);
static_assert(std::has_unique_object_representations_v<FrameHead>);

/// Keepalive probe: asks for any frame soon.
inline constexpr std::uint8_t kFlagProbe = 1;

/// What a record is.
enum class RecordKind : std::uint8_t {
  invalid = 0,
  // How a connection begins and ends.
  hello = 1,    // the connecting side's first: a Greeting, then data
  welcome = 2,  // the answer: a Greeting, then data
  refused = 3,  // the other answer
  end = 4,      // the last, of either end
  // Requests.
  read = 5,
  write = 6,
  write_immediate = 7,
  fetch_add = 8,     // with an Operands
  compare_swap = 9,  // with an Operands
  send = 10,
  send_immediate = 11,
  more = 12,  // of the message that has begun
  // Answers, in the order of the requests.
  data = 13,     // of a READ, or part of it
  value = 14,    // of an atomic: 8 bytes, as they were
  done = 15,     // of everything else
  starved = 16,  // none yet: the oldest request waits for a receive
};
[[nodiscard]] constexpr bool is_request(RecordKind kind) {
  return kind >= RecordKind::read && kind <= RecordKind::more;
}

/// What begins a record; its payload follows, and zeros up to a multiple of 8 bytes:
///
///   0      1        2         3   4       8               12          16    20  24       32
///   +------+--------+---------+---+-------+---------------+-----------+-----+---+--------+-----
///   | kind | status | failure | 0 | bytes | message bytes | immediate | key | 0 | remote | ...
///   +------+--------+---------+---+-------+---------------+-----------+-----+---+--------+-----
struct RecordHead {
  std::uint8_t kind;
  std::uint8_t status;   // of `end`: why, as the fabric's Status
  std::uint8_t failure;  // of `end`: how the oldest request failed, or 0
  std::uint8_t reserved;
  std::uint32_t bytes;          // of payload in this record
  std::uint32_t message_bytes;  // of a request: all that it moves
  std::uint32_t immediate;
  std::uint32_t key;
  std::uint32_t reserved_key;
  std::uint64_t remote;
};
static_assert(sizeof(RecordHead) == 32 && offsetof(RecordHead, bytes) == 4);
static_assert(offsetof(RecordHead, key) == 16 && offsetof(RecordHead, remote) == 24);
static_assert(std::has_unique_object_representations_v<RecordHead>);

struct Greeting {
  std::uint64_t magic;
  std::uint32_t format;
  std::uint32_t reserved;
};
static_assert(sizeof(Greeting) == 16 && std::has_unique_object_representations_v<Greeting>);

struct Operands {
  std::uint64_t operand;  // what is added, or swapped in
  std::uint64_t compare;
};
static_assert(sizeof(Operands) == 16 && std::has_unique_object_representations_v<Operands>);

/// Bytes of a record with so much payload.
[[nodiscard]] constexpr std::uint32_t record_bytes(std::uint32_t payload_bytes) {
  return std::uint32_t{sizeof(RecordHead)} + (payload_bytes + 7) / 8 * 8;
}

/// The most payload in one record.
inline constexpr std::uint32_t kPayloadMax =
    kFrameBytesMax - std::uint32_t{sizeof(FrameHead)} - std::uint32_t{sizeof(RecordHead)};
static_assert(kPayloadMax % 8 == 0);

}  // namespace espalier::wire::ofi
