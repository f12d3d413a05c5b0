// SPDX-License-Identifier: Apache-2.0
// Interface to maps outside the node's own store, as used by a device's schedulers: the component
// that reads them provides ServedMaps here (kinds/map/device implements it).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/node_parts.hpp"
#include "kinds/map/offload/served_map.hpp"

namespace espalier::offload {

/// Counts of remote reads and of the cache. Written by one scheduler's thread, read by any.
struct ElsewhereCounts {
  std::atomic<std::uint64_t> round_trips{0};  // round trips that walks waited for
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> descents{0};          // descents tried in the cache
  std::atomic<std::uint64_t> hits{0};              // descents that the cache knew down to the leaf
  std::atomic<std::uint64_t> remembered_bytes{0};  // bytes that descents took, without roots
  std::atomic<std::uint64_t> balanced{0};          // cached nodes that were read from the host
  std::atomic<std::uint64_t> forwarded{0};         // reads forwarded to the host under overload
  std::atomic<std::uint64_t> feed_reads{0};
  std::atomic<std::uint64_t> feed_changes{0};   // changes received
  std::atomic<std::uint64_t> feed_replaced{0};  // changes of cached nodes
  std::atomic<std::uint64_t> feed_behind{0};    // times that all places were dropped
};

/// The maps that one scheduler walks. Thread: that of the scheduler.
class MapsElsewhere {
 public:
  virtual ~MapsElsewhere() = default;
  MapsElsewhere(const MapsElsewhere&) = delete;
  MapsElsewhere& operator=(const MapsElsewhere&) = delete;

  /// The map of this id, whether or not it exists: walks of a missing map end with not_found.
  [[nodiscard]] virtual std::unique_ptr<ServedMap> serve(std::uint32_t number) = 0;
  [[nodiscard]] ElsewhereCounts& counts() { return counts_; }
  /// Thread: any.
  [[nodiscard]] const ElsewhereCounts& counts() const { return counts_; }

 protected:
  MapsElsewhere() = default;

 private:
  ElsewhereCounts counts_;
};

/// Of a node without maps of its own. Created before its schedulers. Thread: any.
struct NodeMapsElsewhere final : NodePart {
  std::vector<MapsElsewhere*> of_scheduler;  ///< by scheduler; outlive the schedulers
};

}  // namespace espalier::offload
