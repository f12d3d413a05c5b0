// SPDX-License-Identifier: Apache-2.0
// The objects of a node, for handlers of a program's own calls: a store of this process.
//
// A handle keeps its map alive, even after a client drops it, so that memory is freed only with the
// handle. So a store that holds a dropped map is not handed out any more, and is destroyed with the
// last request that uses it, or a moment later; the next request gets a new one.
//
// Thread: any; of the keeper, its scheduler's.
#pragma once

#include <memory>
#include <mutex>

#include "engine/node_parts.hpp"
#include "espalier/map.hpp"
#include "kinds/program/running_call.hpp"

namespace espalier::offload {
struct Services;
}

namespace espalier::node_api {

/// A part of the node, destroyed before the node's store.
class NodeStore final : public offload::NodePart, public program::StoreSource {
 public:
  /// The services that it is a part of, and the calls that are carried out there. Each request sets
  /// them, to the same.
  void serve(offload::Services& services, const std::shared_ptr<const program::OwnCalls>& own);
  [[nodiscard]] std::shared_ptr<Store> store() const override;
  /// Releases the newest store if it holds a dropped map. Cost: a lock, and its maps.
  void let_dropped_go();

 private:
  mutable std::mutex mutex_;  // guards all below
  offload::Services* services_ = nullptr;
  std::shared_ptr<const program::OwnCalls> own_;
  mutable std::shared_ptr<Store> newest_;  // null: none was used yet
};

/// Frees dropped maps even if no request uses the store any more: a part of each scheduler that has
/// served one.
class NodeStoreKeeper final : public offload::SchedulerPart {
 public:
  void maintain(offload::Services& services) override;
};

}  // namespace espalier::node_api
