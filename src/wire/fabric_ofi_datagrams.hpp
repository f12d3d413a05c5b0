// SPDX-License-Identifier: Apache-2.0
// How frames of the fabric's transport over libfabric (fabric_ofi.hpp) travel where a provider
// makes no connections: as datagrams, beside a connection of TCP that says who they are from.
//
// Over TCP each end introduces itself, once, and says nothing more; the end of that connection is
// the end of the link. Then datagrams, each with a head:
//
//   0    8          12     13  16
//   +----+----------+------+---+--------
//   | to | sequence | kind | 0 | frame, or a key
//   +----+----------+------+---+--------
//
// The first of each end goes to the number that the other has given in its introduction, and brings
// a key: the number for all others. So only who receives at an address that was told gets the key,
// and only who has it can speak.
//
// Neither end believes the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace espalier::wire::ofi {

inline constexpr std::uint64_t kIntroductionMagic = 0x4D44524642505345;  // "ESPBFRDM"
inline constexpr std::uint32_t kDatagramFormat = 1;

/// Bytes of a provider's own address, at most.
inline constexpr std::uint32_t kProviderAddressMax = 128;

/// Who an end is, all that it says over TCP.
struct Introduction {
  std::uint64_t magic;
  std::uint32_t format;
  std::uint32_t address_format;    // as libfabric numbers them
  std::uint32_t protocol;          // likewise, of the provider
  std::uint32_t protocol_version;  // likewise
  std::uint64_t number;            // what the key is to be sent to; random
  std::uint32_t address_bytes;
  std::uint32_t reserved;
  std::uint8_t address[kProviderAddressMax];  // the provider's own; zeros behind
};
static_assert(sizeof(Introduction) == 168 && offsetof(Introduction, number) == 24);
static_assert(offsetof(Introduction, address_bytes) == 32 && offsetof(Introduction, address) == 40);
static_assert(std::has_unique_object_representations_v<Introduction>);

/// What a datagram is.
enum class DatagramKind : std::uint8_t { invalid = 0, key = 1, frame = 2 };

/// What begins a datagram.
struct DatagramHead {
  std::uint64_t to;
  std::uint32_t sequence;  // of frames, counted from 0; of the key 0
  std::uint8_t kind;
  std::uint8_t reserved[3];
};
static_assert(sizeof(DatagramHead) == 16 && offsetof(DatagramHead, sequence) == 8);
static_assert(offsetof(DatagramHead, kind) == 12);
static_assert(std::has_unique_object_representations_v<DatagramHead>);

struct Key {
  std::uint64_t number;  // what frames are to be sent to; random
};
static_assert(sizeof(Key) == 8 && std::has_unique_object_representations_v<Key>);

}  // namespace espalier::wire::ofi
