// SPDX-License-Identifier: Apache-2.0
// Kinds of objects in a store, and their durability.
#pragma once

#include <cstdint>
#include <string_view>

namespace espalier {

/// The kind of a named object. The numbers are part of the protocol: never reused.
enum class ObjectKind : std::uint8_t {
  any = 0,  ///< no object's kind: a query that accepts every kind
  map = 1,
  table = 2,
  sequencer = 3,
  hash = 4,
  region = 5,
  embedding = 6,
  model = 7,
};

/// Numbers from here on are for kinds that programs define (docs/offloads.md).
inline constexpr std::uint8_t kOwnKinds = 128;

/// "map", "table", "sequencer", "hash", "region", "embedding", "model"; empty for a kind that this
/// version does not know.
std::string_view name(ObjectKind kind);

/// Which writes a crash of the process or of the machine may lose (docs/durability.md).
enum class Durability : std::uint8_t {
  none = 0,   ///< all: the object is only in memory
  async = 1,  ///< the newest acknowledged writes
  sync = 2,   ///< no acknowledged write
};

/// "none", "async", "sync".
std::string_view name(Durability durability);

/// What happens to the object whose name another one takes. The numbers are part of the protocol.
enum class Displaced : std::uint8_t {
  refused = 0,    ///< the name must be free
  exchanged = 1,  ///< it takes the other's name; there must be one
  dropped = 2,    ///< it is dropped, if there is one
};

}  // namespace espalier
