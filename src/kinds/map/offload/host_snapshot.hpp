// SPDX-License-Identifier: Apache-2.0
// A held version of a local map, for a client or for a request of several walks.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "kinds/map/offload/snapshot.hpp"
#include "kinds/map/write/map_core.hpp"
#include "memory/held_version.hpp"
#include "store/store_core.hpp"

namespace espalier::offload {

/// Held on the host, in its own memory. Keeps the map alive.
class HostSnapshot final : public HeldSnapshot {
 public:
  /// Requires: the caller's epoch was exposed before it read `version`.
  HostSnapshot(std::shared_ptr<tree::MapCore> map, std::uint64_t version, std::string owner)
      : map_(std::move(map)), held_(map_->store.reclaimer.hold(*map_, version, std::move(owner))) {}
  ~HostSnapshot() override { map_->store.reclaimer.drop(*map_, held_); }

  [[nodiscard]] const memory::HeldVersion& version() const override { return *held_; }
  [[nodiscard]] std::uint32_t map() const override { return map_->id; }

 private:
  std::shared_ptr<tree::MapCore> map_;
  std::list<memory::HeldVersion>::iterator held_;
};

}  // namespace espalier::offload
