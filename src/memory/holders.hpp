// SPDX-License-Identifier: Apache-2.0
// Holders of retired memory: readers with an exposed epoch, leases, and snapshots.
#pragma once

#include <cstdint>
#include <string>

namespace espalier::memory {

struct Holder {
  enum class Kind : std::uint8_t { invalid, epoch, lease, snapshot };

  Kind kind = Kind::invalid;
  std::string owner;        ///< "process 12", "session 3"; of a snapshot: its taker
  std::string object;       ///< of a snapshot: the name of its object; any bytes
  std::uint64_t since = 0;  ///< the epoch, or of a snapshot the version
  /// Bytes that this holder keeps, alone or with others: shared bytes count for each.
  std::uint64_t bytes = 0;
};

/// The word for a kind: "epoch", "lease", "snapshot"; else "unknown".
[[nodiscard]] const char* name_of(Holder::Kind kind);

}  // namespace espalier::memory
