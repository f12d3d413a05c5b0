// SPDX-License-Identifier: Apache-2.0
// Taking requests and keeping them going. What connections come, go and need, engine_clients.cpp
// has.
#include "offload/engine.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "base/own_counter.hpp"

namespace espalier::offload {
namespace {

constexpr std::uint32_t kBurst = 16;  // requests that a ring gives at its turn
constexpr std::uint32_t kLanes = 32;  // walks of one map that run together

}  // namespace

ServedMap::ServedMap(std::shared_ptr<tree::MapCore> core_in, base::EpochSlot walks_slot,
                     base::EpochSlot calls_slot, std::uint32_t shard)
    : core(std::move(core_in)),
      walks(core->store, std::move(walks_slot), shard),
      calls(core->store, std::move(calls_slot), shard) {
  engine = std::make_unique<tree::MapExecutor>(
      walks, *core, kLanes, [this](std::uint32_t, base::ReadyQueue& queue) {
        return tree::HostAccess(core->base, queue, true, &interleave_warm);
      });
}

Engine::Engine(Services& services, Doorbells& doorbells, const EngineOptions& options)
    : services_(services), doorbells_(doorbells), options_(options), offloads_(services.offloads) {
  for (std::uint32_t i = 0; i < kInFlight; ++i) {
    places_.push_back(std::make_unique<InFlight>());
    places_.back()->index = i;
  }
  for (std::uint32_t i = kInFlight; i != 0; --i) free_.push_back(places_[i - 1].get());
}

// Whoever ends an engine has ended its connections, and run it until nothing was in flight.
Engine::~Engine() { ESPALIER_ASSERT(idle() && handed_over_ == 0); }

bool Engine::turn() {
  ++turns_;
  bool moved = false;
  if (has_resumed_.load(std::memory_order_acquire)) {
    take_resumed();
    moved = true;
  }
  // With rings that keep it busy it listens for others less often: the row of doorbells costs some
  // lines that its clients write.
  if (!took_ || turns_ % kTurnsToListen == 0) listen();
  took_ = take_requests();
  moved = took_ || moved;
  moved = step_maps() || moved;
  moved = go_on() || moved;
  if (!backlogged_.empty()) moved = settle_backlogs() || moved;
  if (!touched_.empty()) wake_readers();
  while (!ended_.empty()) {
    Connection* const connection = ended_.back();
    ended_.pop_back();
    end(*connection);
  }
  if (turns_ % 256 == 0) keep_house();
  return moved;
}

// --- taking requests -----------------------------------------------------------------------------

bool Engine::take_requests() {
  const std::size_t rings = watched_.size();
  if (rings == 0 || busy() >= kInFlight || !taking_) return false;
  const auto share =
      static_cast<std::uint32_t>(std::max<std::size_t>(kInFlight / rings, std::size_t{kBurst} / 2));
  bool took = false;
  if (first_ >= rings) first_ = 0;
  std::size_t turn = 0;
  for (; turn < rings && busy() < kInFlight; ++turn) {
    std::size_t at = first_ + turn;
    if (at >= rings) at -= rings;
    Connection& connection = *watched_[at];
    const std::uint32_t most = std::min(share, options_.in_flight_max);
    const std::uint32_t has = connection.in_flight - connection.stalled_count;
    if (connection.broken || has >= most || !may_stall(connection)) continue;
    if (take_from(connection, std::min(kBurst, most - has))) {
      connection.quiet_turns = 0;
      took = true;
    } else {
      ++connection.quiet_turns;
    }
  }
  first_ += turn;  // who was not reached is first the next time
  if (first_ >= rings) first_ -= rings;
  return took;
}

bool Engine::take_from(Connection& connection, std::uint32_t burst) {
  bool took = false;
  for (; burst != 0 && busy() < kInFlight && !connection.broken; --burst) {
    InFlight& r = free_place();
    const Taken taken = connection.requests.take(r.message);
    if (taken == Taken::nothing) break;
    if (taken == Taken::broken) {
      break_off(connection);
      break;
    }
    took = true;
    free_.pop_back();
    r.header = base::load_plain<wire::RequestHeader>(r.message.data());
    r.connection = &connection;
    r.map = nullptr;
    r.offload = nullptr;
    r.refused = taken == Taken::refused;
    r.timed_since_ns = 0;
    r.wanted_bytes = 0;
    ++connection.in_flight;
    // Without this nobody could tell whom to answer.
    if ((r.header.ring & wire::kRingBits) >= connection.layout().response_rings) {
      break_off(connection);
      release(r);
    } else if (ring_of(r).backlog_bytes() != 0) {
      stall(r);
    } else {
      begin(r);
    }
  }
  return took;
}

// There are more places than are busy at a time, if some wait for their clients.
InFlight& Engine::free_place() {
  if (free_.empty()) [[unlikely]] {
    places_.push_back(std::make_unique<InFlight>());
    places_.back()->index = static_cast<std::uint32_t>(places_.size() - 1);
    free_.push_back(places_.back().get());
  }
  return *free_.back();
}

void Engine::begin(InFlight& r) {
  if (r.refused) {
    services_.refused_messages.fetch_add(1, std::memory_order_relaxed);
    return fail(r, {Code::out_of_memory, 0, 0});
  }
  if (r.header.key_bytes > r.header.bytes - wire::kRequestHeaderBytes) {
    r.header.key_bytes = 0;
    return fail(r, {Code::invalid_argument, 0, 0});
  }
  if (check(r)) r.offload->start(*this, r);
}

// Answers a request that its offload cannot take.
bool Engine::check(InFlight& r) {
  r.offload = offloads_[r.header.offload];
  if (r.offload == nullptr) {
    fail(r, {Code::unsupported, 0, r.header.offload});
    return false;
  }
  base::count_own(counts_.requests[EngineCounts::place_of(r.header.offload)]);
  if (--until_timed_ == 0) [[unlikely]]
    begin_timing(r);
  const Limits& limits = r.offload->limits;
  const unsigned known = wire::kRingBits | (limits.at_snapshot ? wire::kAtSnapshot : 0u);
  if ((r.header.ring & ~known) != 0) {
    fail(r, {Code::invalid_argument, 0, r.header.ring});
    return false;
  }
  const std::uint32_t payload = r.header.bytes - wire::kRequestHeaderBytes - r.header.key_bytes;
  if (limits.map) {
    r.map = find_map(r.header.map);
    if (r.map == nullptr) {
      fail(r, {Code::not_found, 0, r.header.map});
      return false;
    }
    ++r.map->users;
  } else if (r.header.key_bytes < limits.key_bytes_min ||
             r.header.key_bytes > limits.key_bytes_max) {
    fail(r, {Code::invalid_argument, 0, r.header.key_bytes});
    return false;
  }
  if (payload < limits.payload_bytes_min || payload > limits.payload_bytes_max) {
    fail(r, {Code::invalid_argument, 0, payload});
    return false;
  }
  return true;
}

// Distances from 1 to 127 that look like chance: requests often come in a rhythm, and at fixed
// distances always the same of them might be timed.
void Engine::begin_timing(InFlight& r) {
  until_timed_ = 1 + (++timed_ * 2'654'435'769u >> 16) % 127;
  r.timed_since_ns = base::monotonic_ns();
}

void Engine::end_timing(InFlight& r) {
  counts_.durations[EngineCounts::place_of(r.header.offload)].record(base::monotonic_ns() -
                                                                     r.timed_since_ns);
}

// --- maps ----------------------------------------------------------------------------------------

ServedMap* Engine::find_map(std::uint32_t id) {
  if (id == last_map_id_ && last_map_ != nullptr &&
      !last_map_->core->dropped.load(std::memory_order_acquire)) [[likely]] {
    return last_map_;
  }
  if (const auto known = maps_.find(id); known != maps_.end()) {
    if (known->second->core->dropped.load(std::memory_order_acquire)) return nullptr;
    last_map_id_ = id;
    last_map_ = known->second.get();
    return last_map_;
  }
  auto core = services_.catalog.find(id);
  if (core == nullptr) return nullptr;
  const auto served = serve(std::move(core));
  return served ? *served : nullptr;
}

Result<ServedMap*> Engine::serve(std::shared_ptr<tree::MapCore> core) {
  std::unique_ptr<ServedMap>& place = maps_[core->id];
  if (place != nullptr) return place.get();
  auto walks = services_.store.epochs.join();
  auto calls = services_.store.epochs.join();
  if (!walks || !calls) {
    maps_.erase(core->id);
    return std::unexpected(walks ? calls.error() : walks.error());
  }
  place = std::make_unique<ServedMap>(core, std::move(*walks), std::move(*calls), options_.shard);
  return place.get();
}

// Frees on another thread, for that takes time by the size of the map.
void Engine::let_go_of_dropped_maps() {
  std::erase_if(maps_, [this](auto& entry) {
    ServedMap& map = *entry.second;
    if (!map.core->dropped.load(std::memory_order_acquire) || map.users != 0 || map.walking)
      return false;
    if (last_map_ == &map) last_map_ = nullptr;
    services_.helper.run([core = map.core] {});
    return true;
  });
}

void Engine::walk(InFlight& r, const tree::HeldVersion* held,
                  const tree::WriteCondition& condition) {
  ServedMap& map = *r.map;
  if (!map.walking) {
    map.walking = true;
    map.interleave_warm = map.core->far_interior();
    walking_.push_back(&map);
  }
  r.request.tag = r.index;
  if (held == nullptr && condition.kind == tree::WriteCondition::Kind::none) {
    map.engine->submit({&r.request, 1}, *this);
  } else {
    map.engine->submit({&r.request, this, held, {}, condition});
  }
}

bool Engine::step_maps() {
  if (walking_.empty()) return false;
  std::erase_if(walking_, [](ServedMap* map) {
    map->walking = map->engine->advance() != 0;
    return !map->walking;
  });
  return true;
}

void Engine::done(const Completion& completion) {
  InFlight& r = *places_[completion.tag];
  r.offload->walked(*this, r, completion);
}

bool Engine::items(std::uint64_t tag, std::span<const Item> items) {
  InFlight& r = *places_[tag];
  return r.offload->items(*this, r, items);
}

// --- requests that take several steps ------------------------------------------------------------

bool Engine::go_on() {
  bool moved = false;
  if (!again_.empty()) {
    going_on_.swap(again_);  // what is to go on again comes in the next turn
    for (InFlight* r : going_on_) {
      if (r->connection->closing) {
        release(*r);
      } else {
        r->offload->resume(*this, *r);
      }
    }
    going_on_.clear();
    moved = true;
  }
  for (std::size_t i = 0; i < releases_.size();) {
    const Waiting waiting = releases_[i];
    if (waiting.request->map->core->clock.released() < waiting.version) {
      ++i;
      continue;
    }
    releases_[i] = releases_.back();
    releases_.pop_back();
    waiting.request->offload->resume(*this, *waiting.request);
    moved = true;
  }
  return moved;
}

void Engine::when_released(InFlight& r, std::uint64_t version) {
  releases_.push_back({&r, version});
}

void Engine::when_drained(InFlight& r) {
  if (r.connection->closing) return release(r);
  if (ring_of(r).backlog_bytes() == 0 && r.wanted_bytes == 0) return again(r);
  stall(r);
  look_after(*r.connection);
}

void Engine::hand_over(InFlight& r, std::function<void()> work) {
  ++handed_over_;
  services_.helper.run([this, &r, work = std::move(work)] {
    work();
    // Within the lock, for whoever has seen the request may end the engine.
    const std::lock_guard lock(mutex_);
    resumed_.push_back(&r);
    has_resumed_.store(true, std::memory_order_release);
    wake();
  });
}

void Engine::take_resumed() {
  std::vector<InFlight*> resumed;
  {
    const std::lock_guard lock(mutex_);
    resumed.swap(resumed_);
    has_resumed_.store(false, std::memory_order_relaxed);
  }
  handed_over_ -= static_cast<std::uint32_t>(resumed.size());
  for (InFlight* r : resumed) r->offload->resume(*this, *r);
}

Steps& InFlight::begin_steps() {
  if (!steps) steps = std::make_unique<Steps>();
  *steps = Steps{};
  return *steps;
}

}  // namespace espalier::offload
