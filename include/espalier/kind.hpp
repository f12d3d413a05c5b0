// SPDX-License-Identifier: Apache-2.0
// The kinds of what a store keeps under names, and how long it is kept.
#pragma once

#include <cstdint>
#include <string_view>

namespace espalier {

/// What stands behind a name. The numbers are the protocol's: never reused.
enum class ObjectKind : std::uint8_t {
  any = 0,  ///< of no object: whoever asks takes all kinds
  map = 1,
  table = 2,
  sequencer = 3,
  hash = 4,
  region = 5,
  embedding = 6,
  model = 7,
};

/// From here on the numbers are of kinds that programs define themselves (docs/offloads.md).
inline constexpr std::uint8_t kOwnKinds = 128;

/// "map", "table", "sequencer", "hash", "region", "embedding", "model"; empty for what this version
/// does not know.
std::string_view name(ObjectKind kind);

/// What a crash of the process or of the machine may lose of what was written (docs/durability.md).
enum class Durability : std::uint8_t {
  none = 0,   ///< all: it is in memory alone
  async = 1,  ///< the newest writes, though they were answered
  sync = 2,   ///< nothing that was answered
};

/// "none", "async", "sync".
std::string_view name(Durability durability);

/// What becomes of an object whose name is given to another one. The numbers are the protocol's.
enum class Displaced : std::uint8_t {
  refused = 0,    ///< the name must be free
  exchanged = 1,  ///< it gets the other's name; there must be one
  dropped = 2,    ///< it is dropped, if there is one
};

}  // namespace espalier
