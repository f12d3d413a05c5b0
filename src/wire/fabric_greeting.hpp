// SPDX-License-Identifier: Apache-2.0
// What `espalier fabric serve` sends to a client that connects, in the private data of its accept:
// which memory it offers, and which messages it echoes. All numbers are little-endian.
//
// The reader trusts none of it: the side that offers enforces bounds and rights; here they only
// serve for better error messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace espalier::wire {

inline constexpr std::uint64_t kFabricGreetingMagic = 0x5445524742465345;  // "ESFBGRET"
inline constexpr std::uint32_t kFabricGreetingVersion = 1;

struct FabricGreeting {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t rights;  // as the fabric's RemoteRights
  std::uint64_t base;    // the address of the region's first byte
  std::uint64_t bytes;
  std::uint32_t key;
  std::uint32_t echo_bytes_max;  // the longest message that is sent back
};
static_assert(sizeof(FabricGreeting) == 40 && offsetof(FabricGreeting, base) == 16 &&
              offsetof(FabricGreeting, key) == 32);
static_assert(std::has_unique_object_representations_v<FabricGreeting>);

}  // namespace espalier::wire
