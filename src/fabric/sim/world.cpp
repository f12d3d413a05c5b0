// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/world.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "fabric/sim/endpoint.hpp"
#include "fabric/sim/pair.hpp"
#include "fabric/sim/tags.hpp"

namespace espalier::fabric::sim {

World::World(std::uint64_t seed, const Faults& faults)
    : faults_(faults), random_(seed), keys_seed_(base::mix64(seed + 1)) {}

World::~World() {
  for (const Known& known : known_) ESPALIER_ASSERT(known.endpoint == nullptr);
}

std::unique_ptr<Endpoint> World::add_node(std::string_view name) {
  Node& added = node(name);
  ESPALIER_ASSERT(!added.up);
  added.up = true;
  return add_endpoint(name);
}

std::unique_ptr<Endpoint> World::add_endpoint(std::string_view node_name,
                                              std::shared_ptr<RegionTable> regions) {
  const std::uint32_t number = node_number(node_name);
  ESPALIER_ASSERT(nodes_[number].up);
  if (!regions) {
    auto created = RegionTable::create(base::splitmix64(keys_seed_));
    ESPALIER_ASSERT(created.has_value());
    regions = std::move(*created);
  }
  const auto id = static_cast<std::uint32_t>(known_.size() + 1);
  auto made = std::make_unique<NodeEndpoint>(*this, id, std::move(regions));
  for (const Known& other : known_) {
    const bool same = other.node == number && !other.crashed && other.endpoint != nullptr &&
                      &other.endpoint->regions() == &made->regions();
    if (same) made->share_unflushed(*other.endpoint);
  }
  known_.push_back({number, false, made.get()});
  return made;
}

bool World::step() {
  if (events_.empty()) return false;
  Event event = events_.pop();
  now_ns_ = std::max(now_ns_, event.time_ns);
  happen(std::move(event));
  return true;
}

void World::happen(Event event) {
  if (event.owner != 0) {
    if (has_crashed(event.owner) || endpoint(event.owner) == nullptr) return;
    if (held_back(event)) return;
  }
  ++steps_;
  trace_ = base::mix64(trace_ ^ base::mix64(now_ns_));
  note(event.tag);
  ++depth_;
  event.run();
  --depth_;
}

bool World::held_back(Event& event) {
  Node& owner = node_of(event.owner);
  if (!owner.paused) return false;
  ++counts_.held;
  if (event.message && random_.chance(faults_.pause_loss)) {
    ++counts_.lost;
  } else {
    owner.held.push_back(std::move(event));
  }
  return true;
}

bool World::step_until(std::uint64_t time_ns) {
  if (!events_.empty() && events_.next_ns() <= time_ns) return step();
  // A caller that waits for ever waits for an event, not for the end of time.
  if (time_ns != UINT64_MAX) now_ns_ = std::max(now_ns_, time_ns);
  return false;
}

void World::run_until(std::uint64_t time_ns) {
  while (step_until(time_ns)) continue;
}

void World::spend(std::uint64_t duration_ns) {
  if (depth_ == 0 && duration_ns != 0) run_for(duration_ns);
}

void World::at(std::uint64_t time_ns, Action action) {
  events_.push({std::max(time_ns, now_ns_), 0, 0, false, tag_of(What::action), std::move(action)});
}

void World::schedule(std::uint32_t owner, std::uint64_t delay_ns, std::uint64_t tag,
                     Action action) {
  events_.push({now_ns_ + delay_ns, 0, owner, false, tag, std::move(action)});
}

void World::schedule(PairName pair, std::uint64_t delay_ns, std::uint64_t tag,
                     std::move_only_function<void(Pair&)> action) {
  schedule(pair.endpoint, delay_ns, tag, [this, pair, action = std::move(action)]() mutable {
    if (Pair* const found = endpoint(pair.endpoint)->find(pair.number)) action(*found);
  });
}

std::uint32_t World::node_number(std::string_view name) {
  const auto known = names_.find(name);
  if (known != names_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(nodes_.size());
  names_.emplace(name, number);
  nodes_.emplace_back().name = name;
  return number;
}

NodeEndpoint* World::endpoint(std::uint32_t id) const {
  return id == 0 || id > known_.size() ? nullptr : known_[id - 1].endpoint;
}

void World::forget(std::uint32_t endpoint) {
  known_[endpoint - 1].endpoint = nullptr;
  std::erase_if(addresses_, [endpoint](const auto& entry) { return entry.second == endpoint; });
}

bool World::has_crashed(std::uint32_t endpoint) const { return known_[endpoint - 1].crashed; }

const std::string& World::node_name(std::uint32_t endpoint) const {
  return nodes_[known_[endpoint - 1].node].name;
}

bool World::take_address(std::string_view address, std::uint32_t endpoint) {
  return addresses_.emplace(address, endpoint).second;
}

std::uint32_t World::listener(std::string_view address) const {
  const auto found = addresses_.find(address);
  return found == addresses_.end() ? 0 : found->second;
}

}  // namespace espalier::fabric::sim
