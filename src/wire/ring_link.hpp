// SPDX-License-Identifier: Apache-2.0
// The protocol that carries rings over a fabric.
//
// Both sides have memory of one layout, that of a connection (wire/ring.hpp). The writer of a slot
// writes it into its own memory first, and the link copies it to the same offset of the peer's:
//
//     client's memory          node's memory
//     +-----------------+      +-----------------+
//     | page            |      | page            |   credits land in the page, in a LinkPage
//     | request ring    | ===> | request ring    |
//     | response rings  | <=== | response rings  |
//     +-----------------+      +-----------------+
//
// Slots travel by WRITE with immediate, or as the payload of a SEND with immediate; the immediate
// says up to where the ring has come. So a reader never sees a slot before all of it has landed.
// Credits travel by WRITE, or by SEND with 8 bytes.
//
// A slot stays in its writer's memory until the reader's credit covers it, and its number names it
// for ever. So a lost connection can be replaced: both sides send again what the other's credit
// does not cover, and a duplicate is recognised by its number.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "wire/ring.hpp"

namespace espalier::wire {

inline constexpr std::uint64_t kLinkMagic = 0x4B4E494C4C505345;  // "ESPLLINK", low byte first
inline constexpr std::uint32_t kLinkProtocol = 1;
/// Pairs by which one session WRITEs or adds, at a time.
inline constexpr std::uint32_t kLinkWritesMax = 16;

/// How slots travel.
enum class LinkWay : std::uint8_t {
  invalid = 0,
  write = 1,   // WRITE with immediate, into the peer's ring
  send = 2,    // SEND with immediate; the peer puts them there
  reads = 3,   // none: a second pair of a session that is there, by which its client READs
  writes = 4,  // none: another such, by which it WRITEs windows that it was given, or adds
               // to words
  prove = 5,   // none: a pair by which a client authenticates (wire/link_proof.hpp)
};

/// Names a session to its node: random, never all zero. A holder of it can take the session over.
using LinkToken = std::array<std::uint64_t, 2>;

/// The size of a ring, a power of two, as its logarithm.
[[nodiscard]] constexpr std::uint8_t slots_log2(std::uint32_t slots) {
  return static_cast<std::uint8_t>(std::countr_zero(slots));
}

/// The client's request for a connection. The sizes of rings are logarithms.
struct LinkHello {
  std::uint64_t magic;
  std::uint32_t protocol;
  std::uint8_t way;  // LinkWay
  std::uint8_t request_slots_log2;
  std::uint8_t response_slots_log2;
  std::uint8_t response_rings;
  LinkToken token;     // of the session that is to go on; zero: a new one
  std::uint64_t base;  // of the client's memory; way `write`
  std::uint32_t key;
  std::uint32_t reserved;
};
static_assert(sizeof(LinkHello) == 48 && std::has_unique_object_representations_v<LinkHello>);
static_assert(offsetof(LinkHello, token) == 16 && offsetof(LinkHello, base) == 32);

/// What the node answers.
struct LinkWelcome {
  std::uint64_t magic;
  std::uint32_t protocol;
  std::uint32_t code;  // 0, or a Code: then the rest is 0 but for `detail`
  std::uint32_t detail;
  std::uint8_t way;
  std::uint8_t request_slots_log2;  // what it got
  std::uint8_t response_slots_log2;
  std::uint8_t response_rings;
  std::uint64_t node_id;  // drawn anew at each start
  LinkToken token;
  std::uint64_t base;  // of the node's memory for this client; way `write`
  std::uint32_t key;
  std::uint32_t reserved;
};
static_assert(sizeof(LinkWelcome) == 64 && std::has_unique_object_representations_v<LinkWelcome>);
static_assert(offsetof(LinkWelcome, token) == 32 && offsetof(LinkWelcome, base) == 48);

/// Where the peer's credits land, in a connection's first page.
struct LinkPage {
  std::uint64_t request_credit;  // the node's, in the client's memory
  std::uint64_t reserved[7];
  std::uint64_t response_credits[kResponseRingsMax];  // the client's, in the node's memory
};
static_assert(sizeof(LinkPage) == 192 && std::has_unique_object_representations_v<LinkPage>);
inline constexpr std::uint32_t kLinkPageOffset = 2048;
static_assert(kLinkPageOffset >= sizeof(ConnectionPage) &&
              kLinkPageOffset + sizeof(LinkPage) <= kConnectionPageBytes);

enum class LinkNoteKind : std::uint8_t {
  slots = 0,   // these slots of the ring are in place, or the payload
  credit = 1,  // way `send`: the payload is a credit of 8 bytes
  close = 2,   // the session is over; nothing will go on
};

/// The number that comes with what travels.
///
///   31..30   29..26   25..0
///   +------+--------+-----------------------------------------+
///   | kind | ring   | low bits of the slot behind the last    |
///   +------+--------+-----------------------------------------+
///
/// The request ring is number 0, as the first response ring is: they go different ways.
struct LinkNote {
  LinkNoteKind kind = LinkNoteKind::slots;
  std::uint32_t ring = 0;
  std::uint32_t slot = 0;
};
inline constexpr std::uint32_t kLinkSlotBits = 26;
inline constexpr std::uint32_t kLinkSlotMask = (1u << kLinkSlotBits) - 1;
static_assert(kRingSlotsMax < kLinkSlotMask / 4 && kResponseRingsMax <= 16);

[[nodiscard]] constexpr std::uint32_t to_immediate(const LinkNote& note) {
  return static_cast<std::uint32_t>(note.kind) << 30 | note.ring << kLinkSlotBits |
         (note.slot & kLinkSlotMask);
}
[[nodiscard]] constexpr LinkNote to_note(std::uint32_t immediate) {
  return {static_cast<LinkNoteKind>(immediate >> 30), immediate >> kLinkSlotBits & 0xF,
          immediate & kLinkSlotMask};
}

}  // namespace espalier::wire
