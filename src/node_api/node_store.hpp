// SPDX-License-Identifier: Apache-2.0
// The objects of a node, as handlers of a program's own calls see them: a store of this process.
//
// A map's handle keeps the map, also one that a client has dropped, so that memory comes back only
// when the handle goes. So a store that keeps such a map is handed out no more, and goes with the
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

/// What a node keeps for it: it goes before the node's store.
class NodeStore final : public offload::NodePart, public program::StoreSource {
 public:
  /// The services that it is a part of, and the calls that are carried out there. Each request sets
  /// them, to the same.
  void serve(offload::Services& services, const std::shared_ptr<const program::OwnCalls>& own);
  [[nodiscard]] std::shared_ptr<Store> store() const override;
  /// Lets go of the newest store if that keeps a map which was dropped. Cost: a lock, and its maps.
  void let_dropped_go();

 private:
  mutable std::mutex mutex_;  // guards all below
  offload::Services* services_ = nullptr;
  std::shared_ptr<const program::OwnCalls> own_;
  mutable std::shared_ptr<Store> newest_;  // null: none was asked for yet
};

/// Has dropped maps go, though no request uses the store any more: a part of each scheduler that
/// has served one.
class NodeStoreKeeper final : public offload::SchedulerPart {
 public:
  void maintain(offload::Services& services) override;
};

}  // namespace espalier::node_api
