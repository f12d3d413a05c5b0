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
  executor = std::make_unique<tree::MapExecutor>(
      walks, *core, kLanes, [this](std::uint32_t, base::ReadyQueue& queue) {
        return tree::HostAccess(core->base, queue, true, &interleave_warm);
      });
}

Engine::Engine(Services& services, Doorbells& doorbells, const EngineOptions& options)
    : services_(services), doorbells_(doorbells), options_(options), offloads_(services.offloads) {
  for (std::uint32_t i = 0; i < kInFlight; ++i) {
    places_.push_back(std::make_unique<Request>());
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
  if (!backlogged_.empty()) moved = flush_backlogs() || moved;
  if (!touched_.empty()) wake_readers();
  while (!ended_.empty()) {
    Connection* const connection = ended_.back();
    ended_.pop_back();
    end(*connection);
  }
  if (turns_ % 256 == 0) maintain();
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
    Request& request = free_place();
    const Taken taken = connection.requests.take(request.message);
    if (taken == Taken::nothing) break;
    if (taken == Taken::broken) {
      break_off(connection);
      break;
    }
    took = true;
    free_.pop_back();
    request.header = base::load_plain<wire::RequestHeader>(request.message.data());
    request.connection = &connection;
    request.map = nullptr;
    request.offload = nullptr;
    request.refused = taken == Taken::refused;
    request.timed_since_ns = 0;
    request.wanted_bytes = 0;
    ++connection.in_flight;
    // Without this nobody could tell whom to answer.
    if ((request.header.ring & wire::kRingBits) >= connection.layout().response_rings) {
      break_off(connection);
      release(request);
    } else if (ring_of(request).backlog_bytes() != 0) {
      stall(request);
    } else {
      begin(request);
    }
  }
  return took;
}

// There are more places than are busy at a time, if some wait for their clients.
Request& Engine::free_place() {
  if (free_.empty()) [[unlikely]] {
    places_.push_back(std::make_unique<Request>());
    places_.back()->index = static_cast<std::uint32_t>(places_.size() - 1);
    free_.push_back(places_.back().get());
  }
  return *free_.back();
}

void Engine::begin(Request& request) {
  if (request.refused) {
    services_.refused_messages.fetch_add(1, std::memory_order_relaxed);
    return fail(request, {Code::out_of_memory, 0, 0});
  }
  if (request.header.key_bytes > request.header.bytes - wire::kRequestHeaderBytes) {
    request.header.key_bytes = 0;
    return fail(request, {Code::invalid_argument, 0, 0});
  }
  if (check(request)) request.offload->start(*this, request);
}

// Answers a request that its offload cannot take.
bool Engine::check(Request& request) {
  request.offload = offloads_[request.header.offload];
  if (request.offload == nullptr) {
    fail(request, {Code::unsupported, 0, request.header.offload});
    return false;
  }
  base::count_own(counts_.requests[EngineCounts::place_of(request.header.offload)]);
  if (--until_timed_ == 0) [[unlikely]]
    begin_timing(request);
  const Limits& limits = request.offload->limits;
  const unsigned known = wire::kRingBits | (limits.at_snapshot ? wire::kAtSnapshot : 0u);
  if ((request.header.ring & ~known) != 0) {
    fail(request, {Code::invalid_argument, 0, request.header.ring});
    return false;
  }
  const std::uint32_t payload =
      request.header.bytes - wire::kRequestHeaderBytes - request.header.key_bytes;
  if (limits.map) {
    request.map = find_map(request.header.map);
    if (request.map == nullptr) {
      fail(request, {Code::not_found, 0, request.header.map});
      return false;
    }
    ++request.map->users;
  } else if (request.header.key_bytes < limits.key_bytes_min ||
             request.header.key_bytes > limits.key_bytes_max) {
    fail(request, {Code::invalid_argument, 0, request.header.key_bytes});
    return false;
  }
  if (payload < limits.payload_bytes_min || payload > limits.payload_bytes_max) {
    fail(request, {Code::invalid_argument, 0, payload});
    return false;
  }
  return true;
}

// Distances from 1 to 127 that look like chance: requests often come in a rhythm, and at fixed
// distances always the same of them might be timed.
void Engine::begin_timing(Request& request) {
  until_timed_ = 1 + (++timed_ * 2'654'435'769u >> 16) % 127;
  request.timed_since_ns = base::monotonic_ns();
}

void Engine::end_timing(Request& request) {
  counts_.durations[EngineCounts::place_of(request.header.offload)].record(base::monotonic_ns() -
                                                                           request.timed_since_ns);
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

void Engine::walk(Request& request, const tree::HeldVersion* held,
                  const tree::WriteCondition& condition) {
  ServedMap& map = *request.map;
  if (!map.walking) {
    map.walking = true;
    map.interleave_warm = map.core->far_interior();
    walking_.push_back(&map);
  }
  request.walk.tag = request.index;
  if (held == nullptr && condition.kind == tree::WriteCondition::Kind::none) {
    map.executor->submit({&request.walk, 1}, *this);
  } else {
    map.executor->submit({&request.walk, this, held, {}, condition});
  }
}

bool Engine::step_maps() {
  if (walking_.empty()) return false;
  std::erase_if(walking_, [](ServedMap* map) {
    map->walking = map->executor->advance() != 0;
    return !map->walking;
  });
  return true;
}

void Engine::done(const Completion& completion) {
  Request& request = *places_[completion.tag];
  request.offload->walked(*this, request, completion);
}

bool Engine::items(std::uint64_t tag, std::span<const Item> items) {
  Request& request = *places_[tag];
  return request.offload->items(*this, request, items);
}

// --- requests that take several steps ------------------------------------------------------------

bool Engine::go_on() {
  bool moved = false;
  if (!again_.empty()) {
    going_on_.swap(again_);  // what is to go on again comes in the next turn
    for (Request* request : going_on_) {
      if (request->connection->closing) {
        release(*request);
      } else {
        request->offload->resume(*this, *request);
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

void Engine::when_released(Request& request, std::uint64_t version) {
  releases_.push_back({&request, version});
}

void Engine::on_writable(Request& request) {
  if (request.connection->closing) return release(request);
  if (ring_of(request).backlog_bytes() == 0 && request.wanted_bytes == 0) return again(request);
  stall(request);
  check_connection(*request.connection);
}

void Engine::hand_over(Request& request, std::function<void()> work) {
  ++handed_over_;
  services_.helper.run([this, &request, work = std::move(work)] {
    work();
    // Within the lock, for whoever has seen the request may end the engine.
    const std::lock_guard lock(mutex_);
    resumed_.push_back(&request);
    has_resumed_.store(true, std::memory_order_release);
    wake();
  });
}

void Engine::take_resumed() {
  std::vector<Request*> resumed;
  {
    const std::lock_guard lock(mutex_);
    resumed.swap(resumed_);
    has_resumed_.store(false, std::memory_order_relaxed);
  }
  handed_over_ -= static_cast<std::uint32_t>(resumed.size());
  for (Request* request : resumed) request->offload->resume(*this, *request);
}

RequestState& Request::begin_state() {
  if (!state) state = std::make_unique<RequestState>();
  *state = RequestState{};
  return *state;
}

}  // namespace espalier::offload
