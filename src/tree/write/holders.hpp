// SPDX-License-Identifier: Apache-2.0
// Who keeps memory from being free: readers with an exposed epoch, leases, and snapshots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace espalier::tree {

struct StoreCore;

struct Holder {
  enum class Kind : std::uint8_t { invalid, epoch, lease, snapshot };

  Kind kind = Kind::invalid;
  std::string owner;        ///< "process 12", "session 3"; of a snapshot, what took it
  std::string map;          ///< of a snapshot; any bytes
  std::uint64_t since = 0;  ///< the epoch, or of a snapshot the version
  /// Bytes that this holder keeps, alone or together with others: what several hold counts at each.
  std::uint64_t bytes = 0;
};

/// The word for a kind: "epoch", "lease", "snapshot"; else "unknown".
[[nodiscard]] const char* name_of(Holder::Kind kind);

/// The holders of a store, those of most bytes first, at most `most`. Readers count from their
/// exposed epoch on, so one that keeps up with the present holds 0 bytes and is left out; leases
/// and snapshots are always listed.
/// Cost: the tables of epochs and leases, all retired buffers, under the reclaimer's lock.
/// Thread: any.
[[nodiscard]] std::vector<Holder> holders_of(const StoreCore& store, std::size_t most = 64);

}  // namespace espalier::tree
