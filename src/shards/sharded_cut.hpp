// SPDX-License-Identifier: Apache-2.0
// A cut: snapshots of several shards, of one moment (cut_steps.hpp).
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kinds/map/client/remote_snapshot.hpp"
#include "shards/shard_nodes.hpp"

namespace espalier::client {

inline constexpr std::uint64_t kHoldsNs = 3'000'000'000;

/// Snapshots of the shards from `first` on.
struct Cut {
  std::shared_ptr<ShardNodes> nodes;
  std::size_t first = 0;
  std::vector<std::unique_ptr<RemoteSnapshot>> parts;

  [[nodiscard]] RemoteSnapshot& part(std::size_t shard) const { return *parts[shard - first]; }
  /// The sum of the versions of its parts: of two cuts of the same shards the later one's is not
  /// less, and greater if anything was written between.
  [[nodiscard]] Version version() const;
};

/// Cost: two round trips to all nodes together, and two more for each try that met writes; after
/// kFreeTries of them, holds of at most 1 ms, for which others may have to be waited for.
/// Errors: as RemoteMap::snapshot, with the shard that could not be asked; busy (no hold of all
/// nodes stood long enough within kHoldsNs: they are too slow, or others hold all the time).
Result<Cut> take_cut(std::shared_ptr<ShardNodes> nodes, std::size_t first, std::size_t last);

}  // namespace espalier::client
