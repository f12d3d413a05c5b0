// SPDX-License-Identifier: Apache-2.0
// Maps that do not lie in the node's own store, as a device's schedulers reach them: whoever reads
// them hands them in here, and walks know no more than a ServedMap (kinds/map/device has them).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/node_parts.hpp"
#include "kinds/map/offload/served_map.hpp"

namespace espalier::offload {

/// What was read of memory elsewhere, and what is remembered of it. Written by one scheduler's
/// thread; any may read it.
struct ElsewhereCounts {
  std::atomic<std::uint64_t> round_trips{0};  // that walks waited for
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> descents{0};          // ways down that the cache was asked for
  std::atomic<std::uint64_t> hits{0};              // those that it knew down to the leaf
  std::atomic<std::uint64_t> remembered_bytes{0};  // that ways down took, roots left out
  std::atomic<std::uint64_t> balanced{0};   // nodes that it had, and that were read all the same
  std::atomic<std::uint64_t> forwarded{0};  // reads that the host did, for there were too many
  std::atomic<std::uint64_t> feed_reads{0};
  std::atomic<std::uint64_t> feed_changes{0};   // that were told
  std::atomic<std::uint64_t> feed_replaced{0};  // of nodes that the cache knew
  std::atomic<std::uint64_t> feed_behind{0};    // times that it forgot where nodes are
};

/// The maps that one scheduler walks. Thread: that of the scheduler.
class MapsElsewhere {
 public:
  virtual ~MapsElsewhere() = default;
  MapsElsewhere(const MapsElsewhere&) = delete;
  MapsElsewhere& operator=(const MapsElsewhere&) = delete;

  /// The map of this number, whether there is one or not: walks of none end with not_found.
  [[nodiscard]] virtual std::unique_ptr<ServedMap> serve(std::uint32_t number) = 0;
  [[nodiscard]] ElsewhereCounts& counts() { return counts_; }
  /// Thread: any.
  [[nodiscard]] const ElsewhereCounts& counts() const { return counts_; }

 protected:
  MapsElsewhere() = default;

 private:
  ElsewhereCounts counts_;
};

/// Of a node without maps of its own. Made before its schedulers. Thread: any.
struct NodeMapsElsewhere final : NodePart {
  std::vector<MapsElsewhere*> of_scheduler;  ///< by shard; they outlive the schedulers
};

}  // namespace espalier::offload
