// SPDX-License-Identifier: Apache-2.0
// What the network and the nodes of a world suffer: loss, links that are cut, nodes that crash,
// pause and come back. And the atomic unit, which such a node may take with it.
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "fabric/sim/endpoint.hpp"
#include "fabric/sim/pair.hpp"
#include "fabric/sim/tags.hpp"
#include "fabric/sim/world.hpp"

namespace espalier::fabric::sim {

void World::send(Message message) {
  if (message.to.endpoint == 0) return;
  ++counts_.messages;
  const std::pair link(known_[message.from.endpoint - 1].node,
                       known_[message.to.endpoint - 1].node);
  if (cuts_.contains(link)) {
    ++counts_.cut_off;
    return;
  }
  if (random_.chance(faults_.loss)) {
    ++counts_.lost;
    return;
  }
  if (random_.chance(faults_.duplication)) {
    ++counts_.duplicated;
    deliver(message);
  }
  deliver(std::move(message));
}

void World::deliver(Message message) {
  const bool late = random_.chance(faults_.late);
  if (late) ++counts_.late;
  if (middle && message.kind == Message::Kind::request && message.opcode == Opcode::read) {
    middle(message.key, message.remote);
  }
  const std::uint64_t delay = (late ? faults_.late_ns : faults_.delay_ns).draw(random_);
  const std::uint32_t owner = message.to.endpoint;
  const std::uint64_t tag = tag_of(What::message, message.from, message.sequence) +
                            static_cast<std::uint64_t>(message.kind);
  events_.push(
      {now_ns_ + delay, 0, owner, true, tag, [this, message = std::move(message)]() mutable {
         const bool sender_gone = has_crashed(message.from.endpoint);
         if (sender_gone && random_.chance(faults_.crash_loss)) {
           ++counts_.left_undone;
           return;
         }
         endpoint(message.to.endpoint)->on_message(std::move(message));
       }});
}

void World::crash(std::string_view name) {
  Node& crashed = node(name);
  if (!crashed.up) return;
  ++counts_.crashes;
  crashed.up = false;
  crashed.paused = false;
  for (Known& known : known_) {
    if (&nodes_[known.node] != &crashed || known.crashed) continue;
    known.crashed = true;
    if (known.endpoint == nullptr) continue;
    counts_.lines_lost +=
        known.endpoint->unflushed().crash(known.endpoint->reader(), random_, faults_.cache_loss);
    known.endpoint->crash();
  }
  std::erase_if(addresses_, [this](const auto& entry) { return has_crashed(entry.second); });
  crashed.atomic_of.reset();
  crashed.atomics_waiting.clear();
  // What these hold is only forgotten here, once nothing looks for it any more.
  const std::vector<Event> forgotten = std::exchange(crashed.held, {});
}

std::unique_ptr<Endpoint> World::restart(std::string_view name) {
  crash(name);
  Node& restarted = node(name);
  restarted.up = true;
  restarted.paused = false;
  return add_endpoint(name);
}

void World::pause(std::string_view name) { node(name).paused = true; }

void World::resume(std::string_view name) {
  Node& resumed = node(name);
  resumed.paused = false;
  // Sequentially, as a program that was stopped finds them.
  std::uint64_t time_ns = now_ns_;
  for (Event& event : std::exchange(resumed.held, {})) {
    event.time_ns = time_ns += faults_.start_ns.draw(random_);
    events_.push(std::move(event));
  }
}

void World::cut(std::string_view from, std::string_view to) {
  cuts_.emplace(node_number(from), node_number(to));
}

void World::heal(std::string_view from, std::string_view to) {
  cuts_.erase({node_number(from), node_number(to)});
}

bool World::take_atomic_unit(PairName pair) {
  Node& owner = node_of(pair.endpoint);
  if (owner.atomic_of) {
    owner.atomics_waiting.push_back(pair);
    return false;
  }
  owner.atomic_of = pair;
  return true;
}

void World::leave_atomic_unit(PairName pair) {
  Node& owner = node_of(pair.endpoint);
  std::erase(owner.atomics_waiting, pair);
  if (owner.atomic_of != pair) return;
  owner.atomic_of.reset();
  if (owner.atomics_waiting.empty()) return;
  const PairName next = owner.atomics_waiting.front();
  owner.atomics_waiting.pop_front();
  owner.atomic_of = next;
  schedule(next, 0, tag_of(What::atomic, next), [](Pair& of) { of.responder().do_atomic(); });
}

}  // namespace espalier::fabric::sim
