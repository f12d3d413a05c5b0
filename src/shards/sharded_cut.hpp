// SPDX-License-Identifier: Apache-2.0
// A cut: snapshots of several shards as of one moment (cut_steps.hpp).
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
  /// The sum of its parts' versions: monotonic over cuts of the same shards, and greater if
  /// anything was written in between.
  [[nodiscard]] Version version() const;
};

/// Cost: two round trips to all nodes in parallel, and two more for each try disturbed by writes;
/// after kFreeTries of them, holds of at most 1 ms, possibly after those of other clients.
/// Errors: as RemoteMap::snapshot, with the failed shard; busy (no hold of all nodes stood long
/// enough within kHoldsNs: they are too slow, or other clients hold all the time).
Result<Cut> take_cut(std::shared_ptr<ShardNodes> nodes, std::size_t first, std::size_t last);

}  // namespace espalier::client
