// SPDX-License-Identifier: Apache-2.0
// The bytes of memif, version 2.0: a link for frames through shared memory, as VPP, DPDK and other
// packet programs speak it. docs/formats/memif.md draws them.
//
// Two processes meet at a UNIX socket (SOCK_SEQPACKET). The one that connects makes the memory, and
// hands it over with messages of 128 bytes; from then on frames go through two rings in it. All
// numbers are in the order of the processor, which is that of x86 and ARM: little-endian.
//
// Neither end trusts the other: see fabric/memif.
#pragma once

#include <cstddef>
#include <cstdint>

namespace espalier::wire::memif {

inline constexpr std::uint16_t kVersion = 0x0200;
inline constexpr std::uint32_t kRingCookie = 0x03E3'1F20;
inline constexpr std::uint32_t kLog2SlotsMax = 14;

enum class MessageType : std::uint16_t {
  none = 0,
  acknowledge = 1,
  hello = 2,       // listening to connecting side: what is possible
  init = 3,        // back: which link
  add_region = 4,  // with the descriptor of memory
  add_ring = 5,    // with the descriptor of an event
  connect = 6,     // that was all
  connected = 7,   // listening to connecting side: it is good
  disconnect = 8,
};

inline constexpr std::uint8_t kModeEthernet = 0;
/// Of an add_ring: from the connecting side to the listening one; else the other way.
inline constexpr std::uint16_t kRingToListener = 1;

/// Every message is one of these. Numbers lie wherever they happen to, so they are plain bytes.
struct MessageBytes {
  std::uint8_t type[2];
  std::uint8_t body[126];
};
static_assert(sizeof(MessageBytes) == 128);

struct HelloBytes {
  std::uint8_t type[2];
  std::uint8_t name[32];  // of the program
  std::uint8_t version_min[2];
  std::uint8_t version_max[2];
  std::uint8_t region_last[2];  // the highest index that may be used, of each
  std::uint8_t ring_from_listener_last[2];
  std::uint8_t ring_to_listener_last[2];
  std::uint8_t log2_slots_max;
  std::uint8_t zero[83];
};
static_assert(sizeof(HelloBytes) == 128 && offsetof(HelloBytes, region_last) == 38 &&
              offsetof(HelloBytes, log2_slots_max) == 44);

struct InitBytes {
  std::uint8_t type[2];
  std::uint8_t version[2];
  std::uint8_t link[4];
  std::uint8_t mode;
  std::uint8_t secret[24];
  std::uint8_t name[32];
  std::uint8_t zero[63];
};
static_assert(sizeof(InitBytes) == 128 && offsetof(InitBytes, secret) == 9);

struct AddRegionBytes {
  std::uint8_t type[2];
  std::uint8_t index[2];
  std::uint8_t bytes[8];
  std::uint8_t zero[116];
};
static_assert(sizeof(AddRegionBytes) == 128);

struct AddRingBytes {
  std::uint8_t type[2];
  std::uint8_t flags[2];
  std::uint8_t index[2];
  std::uint8_t region[2];
  std::uint8_t offset[4];
  std::uint8_t log2_slots;
  std::uint8_t private_bytes[2];  // behind each descriptor
  std::uint8_t zero[113];
};
static_assert(sizeof(AddRingBytes) == 128 && offsetof(AddRingBytes, log2_slots) == 12);

/// A connect or connected.
struct ConnectBytes {
  std::uint8_t type[2];
  std::uint8_t name[32];  // of the link, for people
  std::uint8_t zero[94];
};
static_assert(sizeof(ConnectBytes) == 128);

struct DisconnectBytes {
  std::uint8_t type[2];
  std::uint8_t code[4];
  std::uint8_t reason[96];
  std::uint8_t zero[26];
};
static_assert(sizeof(DisconnectBytes) == 128);

/// What a ring begins with; 2^n descriptors follow. Head and tail count on and on.
///
/// To the listening side, the sender moves the head behind frames that it has written, and the
/// receiver the tail behind those that it has taken. The other way the receiver offers room by
/// moving the head, and the sender fills it and moves the tail: memory is always the connecting
/// side's.
struct RingBytes {
  std::uint32_t cookie;
  std::uint16_t flags;
  std::uint16_t head;
  std::uint8_t zero[56];
  std::uint16_t tail;
  std::uint8_t zero_too[62];
};
static_assert(sizeof(RingBytes) == 128 && offsetof(RingBytes, head) == 6 &&
              offsetof(RingBytes, tail) == 64);
/// The receiver polls, and wants no events.
inline constexpr std::uint16_t kRingQuiet = 1;

struct DescriptorBytes {
  std::uint16_t flags;
  std::uint16_t region;
  std::uint32_t bytes;
  std::uint32_t offset;
  std::uint32_t metadata;
};
static_assert(sizeof(DescriptorBytes) == 16 && offsetof(DescriptorBytes, offset) == 8);
/// The frame goes on in the next descriptor.
inline constexpr std::uint16_t kDescriptorGoesOn = 1;

}  // namespace espalier::wire::memif
