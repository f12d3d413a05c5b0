// SPDX-License-Identifier: Apache-2.0
// A local map as the requests of one scheduler use it: walks run here, by loads and stores.
//
// Thread: that of the scheduler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/epoch.hpp"
#include "kinds/map/offload/served_map.hpp"
#include "store/thread_context.hpp"

namespace espalier::tree {
class MapCore;
}

namespace espalier::offload {

/// Of the host: walks by loads and stores, and all calls that need the map itself.
class HostMap final : public ServedMap {
 public:
  HostMap(std::shared_ptr<tree::MapCore> core_in, base::EpochSlot walks_slot,
          base::EpochSlot calls_slot, std::uint32_t counters);
  ~HostMap() override;

  void submit(const espalier::Request& walk, Handler& handler, wire::Ref hint) override;
  void submit(const tree::WalkRequest& walk) override;
  std::size_t advance() override;
  [[nodiscard]] bool keeps_versions() const override;
  [[nodiscard]] std::shared_ptr<HeldSnapshot> hold(std::uint64_t version,
                                                   const std::string& owner) override;
  [[nodiscard]] base::EpochPin pin() override;
  [[nodiscard]] std::optional<memory::StagedBytes> stage(std::string_view value) override;
  [[nodiscard]] bool dropped() const override;
  [[nodiscard]] std::uint64_t released() const override;
  [[nodiscard]] bool failed() const override;
  [[nodiscard]] bool may_write() const override;
  [[nodiscard]] std::uint64_t take_unreleased() override;
  /// Cost: within the completion of the key's walk, a lock and a lookup; else also a descent.
  void count_answer(std::string_view key, std::uint64_t now_ns) override;
  [[nodiscard]] std::shared_ptr<void> keep() const override { return core; }

  const std::shared_ptr<tree::MapCore> core;
  tree::ThreadContext calls;  ///< of calls that run inline, beside the walks

 private:
  class Walks;  // a MapExecutor
  void begin_walks();

  tree::ThreadContext walks_;  // used by executor_
  bool interleave_warm_ = false;
  std::unique_ptr<Walks> executor_;
};

}  // namespace espalier::offload
