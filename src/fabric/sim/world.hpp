// SPDX-License-Identifier: Apache-2.0
// A deterministic simulation in one thread: nodes, the network between them, a clock that only
// events move, and one seed from which everything follows. Protocols of this project are run in it
// first.
//
//   sim::World world(seed, sim::Faults::harsh());
//   auto a = world.add_node("a");            // an Endpoint; see fabric/endpoint.hpp
//   auto b = world.add_node("b");
//   b->listen("b");
//   auto pair = a->connect("b", options, {});
//   world.at(5'000, [&] { world.crash("b"); });
//   while (pair->state() == ...) a->wait(1'000'000);     // steps the world
//
// A program of several nodes is either written as actions (at, after), or each part of it is called
// in turn. An action may wait() itself: other events, and other actions, then run inside it.
//
// Invariants
// I1. Neither addresses nor the clock of the machine, nor the order of any hash, decide anything:
//     the same seed and the same calls make the same events.
// I2. Events name endpoints and pairs by numbers that are never used again. What is gone is not
//     found, so nothing dangles.
//
// Thread: one at a time. Endpoints end before their world.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "fabric/endpoint.hpp"
#include "fabric/sim/events.hpp"
#include "fabric/sim/faults.hpp"
#include "fabric/sim/message.hpp"

namespace espalier::fabric::sim {

class NodeEndpoint;
class Pair;

class World {
 public:
  explicit World(std::uint64_t seed, const Faults& faults = {});
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  /// Makes a node, and an endpoint on it. Requires: there is no such node.
  std::unique_ptr<Endpoint> add_node(std::string_view name);
  /// Makes one more endpoint on a node that is up, which offers `regions` or, without them, a table
  /// of its own.
  std::unique_ptr<Endpoint> add_endpoint(std::string_view node,
                                         std::shared_ptr<RegionTable> regions = nullptr);

  [[nodiscard]] std::uint64_t now_ns() const { return now_ns_; }
  /// Runs the next event. False: there is none.
  bool step();
  /// Runs all events that are due until then, and sets the time to it.
  void run_until(std::uint64_t time_ns);
  void run_for(std::uint64_t duration_ns) { run_until(now_ns_ + duration_ns); }
  /// Runs one event if it is due until then; if none is, the time becomes then.
  bool step_until(std::uint64_t time_ns);
  /// Runs an action at that time; one that is past counts as now.
  void at(std::uint64_t time_ns, Action action);
  void after(std::uint64_t delay_ns, Action action) { at(now_ns_ + delay_ns, std::move(action)); }

  /// The node crashes immediately: its pairs lose their state, a WRITE that is landing in its
  /// memory stays half done, and what it has sent may or may not arrive. Its memory is the test's.
  /// Its endpoints stay, as objects that can only be destroyed.
  void crash(std::string_view node);
  /// Restarts a node that has crashed (or crashes it, if it has not), with an endpoint on it,
  /// without any state of before.
  std::unique_ptr<Endpoint> restart(std::string_view node);
  /// The node does nothing until it is resumed. What comes meanwhile waits, or is lost.
  void pause(std::string_view node);
  void resume(std::string_view node);
  /// Nothing sent by one node arrives at the other, until the link is healed. The other direction
  /// is not touched.
  void cut(std::string_view from, std::string_view to);
  void heal(std::string_view from, std::string_view to);

  /// A switch on the path of READs, which may redirect them by its tables: it sees the key and the
  /// address of each one that is sent, duplicates one by one; null: nothing.
  std::function<void(RegionKey& key, std::uint64_t& address)> middle;

  /// May be changed at any time, but for what says otherwise there.
  [[nodiscard]] Faults& faults() { return faults_; }
  [[nodiscard]] Counts& counts() { return counts_; }
  /// A hash of all events so far, and of all completions.
  [[nodiscard]] std::uint64_t trace() const { return trace_; }

  // For the parts of the transport.

  [[nodiscard]] base::Random& random() { return random_; }
  /// How much has happened.
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  /// Puts a thing that was seen into the trace.
  void note(std::uint64_t seen) { trace_ = base::mix64(trace_ ^ base::mix64(seen)); }
  /// An event of an endpoint: it waits while its node is paused, and never happens when that has
  /// crashed or the endpoint has ended.
  void schedule(std::uint32_t owner, std::uint64_t delay_ns, std::uint64_t tag, Action action);
  /// The same of a pair, while there is one.
  void schedule(PairName pair, std::uint64_t delay_ns, std::uint64_t tag,
                std::move_only_function<void(Pair&)> action);
  void send(Message message);
  /// Runs what happens meanwhile, unless something is happening already.
  void spend(std::uint64_t duration_ns);

  [[nodiscard]] NodeEndpoint* endpoint(std::uint32_t id) const;
  void forget(std::uint32_t endpoint);
  [[nodiscard]] bool has_crashed(std::uint32_t endpoint) const;
  [[nodiscard]] const std::string& node_name(std::uint32_t endpoint) const;
  /// False: another endpoint has it.
  bool take_address(std::string_view address, std::uint32_t endpoint);
  /// 0: no endpoint listens there.
  [[nodiscard]] std::uint32_t listener(std::string_view address) const;

  /// The atomic unit of a node executes one atomic at a time. True: this pair has it; else the pair
  /// is called when it does.
  bool take_atomic_unit(PairName pair);
  /// Also leaves the queue for it.
  void leave_atomic_unit(PairName pair);

 private:
  struct Node {
    std::string name;
    bool up = false;
    bool paused = false;
    std::vector<Event> held;
    std::optional<PairName> atomic_of;
    std::deque<PairName> atomics_waiting;
  };
  struct Known {
    std::uint32_t node = 0;
    bool crashed = false;
    NodeEndpoint* endpoint = nullptr;
  };

  [[nodiscard]] std::uint32_t node_number(std::string_view name);
  [[nodiscard]] Node& node(std::string_view name) { return nodes_[node_number(name)]; }
  [[nodiscard]] Node& node_of(std::uint32_t endpoint) { return nodes_[known_[endpoint - 1].node]; }
  void happen(Event event);
  bool held_back(Event& event);
  void deliver(Message message);

  Faults faults_;
  Counts counts_;
  base::Random random_;
  std::uint64_t keys_seed_;
  std::uint64_t now_ns_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t trace_ = 0;
  std::uint32_t depth_ = 0;
  EventQueue events_;
  std::deque<Node> nodes_;
  std::map<std::string, std::uint32_t, std::less<>> names_;
  std::vector<Known> known_;  // endpoint n stands at n - 1
  std::map<std::string, std::uint32_t, std::less<>> addresses_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> cuts_;
};

}  // namespace espalier::fabric::sim
