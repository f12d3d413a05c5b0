// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/offload/host_map.hpp"

#include <atomic>
#include <utility>

#include "base/epoch_pins.hpp"
#include "catalog/catalog.hpp"
#include "catalog/unflushed_age.hpp"
#include "kinds/map/host/host_executor.hpp"
#include "kinds/map/offload/host_snapshot.hpp"
#include "kinds/map/walk/next_step.hpp"
#include "kinds/map/write/map_core.hpp"
#include "kinds/map/write/staged_value.hpp"
#include "store/store_core.hpp"

namespace espalier::offload {
namespace {

constexpr std::uint32_t kLanes = 32;  // concurrent walks of one map

}  // namespace

class HostMap::Walks final : public tree::MapExecutor {
 public:
  using tree::MapExecutor::HostExecutor;
};

HostMap::HostMap(std::shared_ptr<tree::MapCore> core_in, base::EpochSlot walks_slot,
                 base::EpochSlot calls_slot, std::uint32_t counters)
    : core(std::move(core_in)),
      calls(core->store, std::move(calls_slot), counters),
      walks_(core->store, std::move(walks_slot), counters) {
  shard = core->shard.get();
  recorded = core->redo() != nullptr;
  executor_ = std::make_unique<Walks>(
      walks_, *core, kLanes, [this](std::uint32_t, base::ReadyQueue& queue) {
        return tree::HostAccess(core->base, queue, true, &interleave_warm_);
      });
  // The scheduler delays the answers if the store's records must be durable.
  if (recorded && core->store.catalog.redo() != nullptr) executor_->answer_before_release();
}

HostMap::~HostMap() = default;

void HostMap::submit(const espalier::Request& walk, Handler& handler, wire::Ref hint) {
  begin_walks();
  executor_->submit(walk, handler, hint);
}

void HostMap::submit(const tree::WalkRequest& walk) {
  begin_walks();
  executor_->submit(walk);
}

std::size_t HostMap::advance() { return executor_->advance(); }

bool HostMap::keeps_versions() const { return core->options.versions; }

base::EpochPin HostMap::pin() { return core->store.epoch_pins.pin(walks_.slot.exposed()); }

bool HostMap::dropped() const { return core->dropped.load(std::memory_order_acquire); }

std::uint64_t HostMap::released() const { return core->clock.released_now(); }

bool HostMap::failed() const { return core->clock.failed(); }

bool HostMap::may_write() const {
  return core->clock.may_take() && !catalog::must_wait_for_disk(*core);
}

std::uint64_t HostMap::take_unreleased() { return executor_->take_unreleased(); }

// The map may have grown since its last walk.
void HostMap::begin_walks() {
  if (!walking) interleave_warm_ = core->far_interior();
}

void HostMap::count_answer(std::string_view key, std::uint64_t now_ns) {
  if (const wire::Lid leaf = executor_->answering(); leaf != 0) {
    core->heat.add({&leaf, 1}, now_ns);
    return;
  }
  if (key.size() > core->geometry.key_bytes_max) return;
  tree::Cursor cursor;
  cursor.key.assign(key);
  calls.slot.enter();
  cursor.read_version = core->clock.released();
  const wire::Lid leaf = core->view(tree::find_leaf(*core, cursor, {})).lid();
  calls.slot.exit();
  core->heat.add({&leaf, 1}, now_ns);
}

std::shared_ptr<HeldSnapshot> HostMap::hold(std::uint64_t version, const std::string& owner) {
  if (!keeps_versions()) return nullptr;
  return std::make_shared<HostSnapshot>(core, version, owner);
}

std::optional<memory::StagedBytes> HostMap::stage(std::string_view value) {
  auto staged = tree::stage_value(calls, *core, value);
  if (!staged) return std::nullopt;
  return *std::move(staged);
}

}  // namespace espalier::offload
