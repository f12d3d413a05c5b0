// SPDX-License-Identifier: Apache-2.0
#include "client/embedded_store.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/machine_memory.hpp"
#include "base/until_fork.hpp"
#include "catalog/await_opened.hpp"
#include "catalog/await_records.hpp"
#include "channel/embedded/embedded_channel.hpp"
#include "kinds/map/client/embedded_map.hpp"
#include "kinds/table/client/embedded_tables.hpp"
#include "store/clock_groups.hpp"

namespace espalier::client {
namespace {

// The epoch table lies in the region's first extent.
constexpr std::uint32_t kParticipantsMax = EmbeddedStore::kParticipantsMax;
static_assert(base::EpochTable::bytes(kParticipantsMax) <= memory::kExtentBytes);

}  // namespace

Result<std::unique_ptr<StoreImpl>> EmbeddedStore::open(const StoreOptions& options) {
  auto region = reserve(options);
  if (!region) return std::unexpected(region.error());
  return std::make_unique<EmbeddedStore>(std::move(*region), options);
}

Result<memory::Region> EmbeddedStore::reserve(const StoreOptions& options) {
  if (options.participants_max == 0 || options.participants_max > kParticipantsMax) {
    return fail(Code::invalid_argument, options.participants_max);
  }
  memory::RegionOptions region_options;
  region_options.bytes_max =
      options.memory_bytes_max != 0 ? options.memory_bytes_max : base::default_store_bytes();
  region_options.huge_pages = options.huge_pages;
  return memory::Region::reserve(region_options);
}

EmbeddedStore::EmbeddedStore(memory::Region region, const StoreOptions& options)
    : shared_(base::make_shared_until_fork<tree::StoreCore>(std::move(region),
                                                            options.participants_max)),
      core_(*shared_),
      channel_(base::make_shared_until_fork<EmbeddedChannel>(shared_)),
      regexes_(options.regexes),
      sessions_(base::make_shared_until_fork<CallContextPool>(core_)) {
  if (options.shared_clock) core_.groups->share();
}

EmbeddedStore::EmbeddedStore(std::shared_ptr<tree::StoreCore> core,
                             std::shared_ptr<table::RegexCompiler> regexes, Dropped dropped)
    : shared_(std::move(core)),
      core_(*shared_),
      channel_(base::make_shared_until_fork<EmbeddedChannel>(shared_)),
      regexes_(std::move(regexes)),
      keeps_dropped_(dropped == Dropped::kept),
      sessions_(base::make_shared_until_fork<CallContextPool>(core_)) {}

EmbeddedStore::~EmbeddedStore() {
  sessions_->close();
  maps_.clear();
}

// The one implementation behind all handles of a map.
MapImpl* EmbeddedStore::behind_handles(std::shared_ptr<tree::MapCore> core) {
  std::unique_ptr<EmbeddedMap>& map = maps_[core->id];
  if (!map) map = std::make_unique<EmbeddedMap>(std::move(core), sessions_);
  return map.get();
}

// Allocates all that a handle of one more map needs, before the map is created: a call that finds
// no memory then has created none.
EmbeddedStore::MapsById::node_type EmbeddedStore::handle_room() {
  MapsById made;
  made.emplace(0, std::make_unique<EmbeddedMap>(sessions_));
  maps_.reserve(maps_.size() + 1);
  return made.extract(made.begin());
}

// Waits until what an answer reveals about maps is durable; no lock is held while the disk flushes.
template <class Answer>
Result<Answer> EmbeddedStore::durable(Result<Answer> answer) const {
  if (const auto done = catalog::await_objects(core_.catalog); !done) {
    return std::unexpected(done.error());
  }
  return answer;
}

Result<MapImpl*> EmbeddedStore::create_map(std::string_view name, const MapOptions& options) {
  return durable(make_map(name, options));
}

Result<MapImpl*> EmbeddedStore::open_map(std::string_view name) {
  std::uint32_t id = 0;
  auto found = find_map(name, id);
  if (!found) return durable(std::move(found));
  if (const auto done = catalog::await_opened(core_.catalog, id); !done) {
    return std::unexpected(done.error());
  }
  return found;
}

Result<void> EmbeddedStore::drop_map(std::string_view name) { return durable(take_map_away(name)); }

Result<MapImpl*> EmbeddedStore::make_map(std::string_view name, const MapOptions& options) {
  const std::lock_guard lock(mutex_);
  MapsById::node_type room = handle_room();
  auto core = tree::create_map(core_, name, options);
  if (!core) return std::unexpected(core.error());
  room.key() = (*core)->id;
  room.mapped()->begin(std::move(*core));
  return maps_.insert(std::move(room)).position->second.get();
}

// Also returns the id: without the lock the map may be dropped, and must not be read.
Result<MapImpl*> EmbeddedStore::find_map(std::string_view name, std::uint32_t& id) {
  const std::lock_guard lock(mutex_);
  auto core = core_.catalog.open<tree::MapCore>(name);
  if (!core) return std::unexpected(core.error());
  id = (*core)->id;
  return behind_handles(std::move(*core));
}

Result<void> EmbeddedStore::take_map_away(std::string_view name) {
  std::unique_ptr<EmbeddedMap> map;  // destroyed after the lock is released, and with it the memory
  const std::lock_guard lock(mutex_);
  const auto core = core_.catalog.drop<tree::MapCore>(name);
  if (!core) return std::unexpected(core.error());
  if (keeps_dropped_) return {};
  sessions_->forget(**core);
  const auto found = maps_.find((*core)->id);
  if (found == maps_.end()) return {};
  map = std::move(found->second);
  maps_.erase(found);
  return {};
}

bool EmbeddedStore::keeps_dropped() {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(maps_,
                             [](const auto& each) { return each.second->core().is_dropped(); });
}

std::unique_ptr<TablesImpl> EmbeddedStore::tables() {
  return std::make_unique<EmbeddedTables>(channel_, shared_, regexes_);
}

void EmbeddedStore::trim() {
  if (const auto session = SessionLease::take(sessions_)) {
    tree::ThreadContext& thread = (*session)->thread;
    static_cast<void>(core_.parts.give_back(thread.cache));
    // The first round stamps what awaited its release, the next frees it.
    for (int round = 0; round < 3; ++round) core_.reclaimer.collect(thread.cache);
    thread.cache.flush();
  }
  core_.pool.trim();
}

}  // namespace espalier::client
