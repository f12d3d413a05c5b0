// SPDX-License-Identifier: Apache-2.0
#include "tests/support/peer_world.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "fabric/sim/world.hpp"
#include "tests/support/peer_world_node.hpp"

namespace espalier::test {
namespace {

constexpr std::uint64_t kWorldMs = 1'000'000;
constexpr std::uint64_t kTroubleNs = 30 * kWorldMs;  // when the last of it begins, at the latest
constexpr std::uint64_t kAnswersNs = 3'000 * kWorldMs;
constexpr std::uint64_t kReleaseNs = 2'000 * kWorldMs;
constexpr std::uint64_t kLateNs = 40 * kWorldMs;  // no message is later
constexpr std::uint64_t kTurnNs = 5'000;
constexpr std::uint64_t kQuietTurnNs = 50'000;  // when all clients are idle

fabric::sim::Faults faults_of(std::uint64_t seed) {
  auto faults = fabric::sim::Faults::harsh();
  faults.split_atomic_ns = {0, 0};  // else no key allows atomics
  // Some worlds are calmer, so that much happens between two failures.
  if (seed % 3 == 0) faults = {};
  return faults;
}

class PeerWorld {
 public:
  PeerWorld(std::uint64_t seed, const PeerWorldOptions& options, PeerReached& reached)
      : options_(options),
        random_(seed),
        usual_(faults_of(seed)),
        world_(seed, usual_),
        history_(reached),
        reached_(reached),
        parts_{.world = world_,
               .random = random_,
               .history = history_,
               .reached = reached,
               .nodes = options.nodes,
               .way = options.way,
               .answer_ns = random_.between(4, 60) * kWorldMs,
               .window = options.window,
               .posts = options.posts,
               .calls = options.calls,
               .other_keys = options.drops} {
    places_.resize(options.nodes);
    for (std::uint32_t i = 0; i < options.nodes; ++i) {
      start(i, world_.add_node(peer_node_name(i)));
      turn(i);
    }
  }
  ~PeerWorld() {
    ending_ = true;
    for (Place& place : places_) end(place);
  }
  PeerWorld(const PeerWorld&) = delete;
  PeerWorld& operator=(const PeerWorld&) = delete;

  std::string run() {
    for (Place& place : places_) place.node->ask(options_.requests);
    plan_trouble();
    await_answers([this] { return world_.now_ns() > kTroubleNs && troubles_ == 0; });
    drain();
    if (!history_.wrong().empty()) return history_.wrong();
    be_quiet();
    await_answers([] { return true; });
    drain();
    if (history_.wrong().empty()) history_.check_all();
    return history_.wrong();
  }

 private:
  struct Place {
    std::unique_ptr<PeerWorldNode> node;  // null: it is to come again
    bool crashed = false;
    bool paused = false;
  };

  template <class Condition>
  void run_until(std::uint64_t time_ns, const Condition& condition) {
    while (world_.now_ns() < time_ns && history_.wrong().empty() && !condition()) {
      world_.step_until(std::min(time_ns, world_.now_ns() + kQuietTurnNs));
    }
  }
  /// All requests must be answered.
  template <class Condition>
  void await_answers(const Condition& and_this) {
    const auto answered = [](const Place& place) {
      return place.node && !place.crashed && place.node->is_answered();
    };
    turn_ns_ = kTurnNs;
    run_until(world_.now_ns() + kTroubleNs + kAnswersNs,
              [&] { return and_this() && std::ranges::all_of(places_, answered); });
    for (const Place& place : places_) {
      if (answered(place)) continue;
      history_.set_wrong(place.node ? place.node->unanswered() : "a node has not come again");
    }
  }
  /// All resources must be freed; delayed messages have arrived by then.
  void drain() {
    turn_ns_ = kQuietTurnNs;
    const std::uint64_t soonest = world_.now_ns() + kLateNs;
    run_until(soonest + kReleaseNs, [&] { return world_.now_ns() >= soonest && audit().empty(); });
    if (const std::string wrong = audit(); !wrong.empty()) history_.set_wrong(wrong);
  }
  void be_quiet() {
    world_.faults() = {};
    parts_.other_keys = false;
    parts_.quiet = true;
    for (Place& place : places_) {
      place.node->forget_grants();
      place.node->ask(4);
    }
  }
  std::string audit() {
    for (Place& place : places_) {
      if (!place.node || place.crashed) return "a node is not there";
      if (!place.node->links_are_up()) return "a link is down";
      if (const std::string wrong = place.node->audit(); !wrong.empty()) return wrong;
    }
    return {};
  }

  // --- nodes -------------------------------------------------------------------------------------

  void start(std::uint32_t number, std::unique_ptr<fabric::Endpoint> endpoint) {
    places_[number] = {
        std::make_unique<PeerWorldNode>(parts_, number, sources_++, std::move(endpoint))};
  }
  void turn(std::uint32_t number) {
    if (ending_) return;
    Place& place = places_[number];
    if (place.node && !place.crashed && !place.paused) place.node->turn();
    world_.after(turn_ns_, [this, number] { turn(number); });
  }
  /// What it opens aside comes to its end first.
  void end(Place& place) {
    if (!place.node) return;
    place.node->set_crashed();
    while (!place.node->may_end()) world_.step();
    place.node.reset();
  }
  void crash(std::uint32_t number, std::uint64_t down_ns) {
    Place& place = places_[number];
    if (!place.node || place.crashed || place.paused) return finish_trouble();
    ++reached_.crashes;
    place.crashed = true;
    place.node->set_crashed();
    world_.crash(peer_node_name(number));
    world_.after(down_ns, [this, number] { come_again(number); });
  }
  void come_again(std::uint32_t number) {
    Place& place = places_[number];
    if (!place.node->may_end()) {
      return world_.after(kWorldMs / 10, [this, number] { come_again(number); });
    }
    place.node.reset();
    start(number, world_.restart(peer_node_name(number)));
    place.node->ask(options_.requests / 2);
    finish_trouble();
  }

  // --- trouble -----------------------------------------------------------------------------------

  void finish_trouble() { --troubles_; }
  template <class Begin>
  void plan(std::uint64_t most, const Begin& begin) {
    for (std::uint64_t i = random_.between(0, most); i != 0; --i) {
      ++troubles_;
      world_.at(random_.between(0, kTroubleNs), begin);
    }
  }
  void plan_trouble() {
    if (options_.crashes) {
      plan(2, [this] { crash(any_node(), random_.between(0, 10 * kWorldMs)); });
    }
    if (options_.cuts) plan(4, [this] { cut(); });
    if (options_.pauses) plan(2, [this] { pause(any_node()); });
    if (options_.drops) plan(2, [this] { drop(any_node()); });
    if (options_.gone_clients) plan(2, [this] { replace_client(any_node()); });
    if (options_.refusals) {
      plan(2, [this] { refuse_memory(any_node()); });
      if (random_.chance(0.3)) {
        ++troubles_;
        refuse_memory(any_node());
      }
    }
  }
  std::uint32_t any_node() { return static_cast<std::uint32_t>(random_.below(options_.nodes)); }

  // What was sent just before may be so late that another session could have begun by then.
  void cut() {
    ++reached_.cuts;
    if (random_.chance(0.5)) return begin_cut();
    world_.faults().late = 1;
    world_.faults().late_ns = {5 * kWorldMs, kLateNs};
    world_.after(4 * kTurnNs, [this] {
      world_.faults() = usual_;
      begin_cut();
    });
  }
  // In one direction or both; shorter or longer than a pair's timeout.
  void begin_cut() {
    const std::uint32_t from = any_node();
    const std::uint32_t to = (from + 1 + any_node() % (options_.nodes - 1)) % options_.nodes;
    const std::uint64_t which = random_.between(1, 3);
    const auto each = [=](auto change) {
      if ((which & 1) != 0) change(peer_node_name(from), peer_node_name(to));
      if ((which & 2) != 0) change(peer_node_name(to), peer_node_name(from));
    };
    each([this](const auto& a, const auto& b) { world_.cut(a, b); });
    world_.after(random_.between(kWorldMs / 10, 40 * kWorldMs), [this, each] {
      each([this](const auto& a, const auto& b) { world_.heal(a, b); });
      finish_trouble();
    });
  }
  void pause(std::uint32_t number) {
    Place& place = places_[number];
    if (place.paused || place.crashed) return finish_trouble();
    ++reached_.pauses;
    place.paused = true;
    // Its process alone, or its machine.
    const bool machine = random_.chance(0.5);
    if (machine) world_.pause(peer_node_name(number));
    world_.after(random_.between(kWorldMs / 10, 30 * kWorldMs), [this, number, machine] {
      places_[number].paused = false;
      if (machine) world_.resume(peer_node_name(number));
      finish_trouble();
    });
  }
  void drop(std::uint32_t number) {
    const Place& place = places_[number];
    if (place.node && !place.crashed && !place.paused) place.node->replace_region();
    finish_trouble();
  }
  void replace_client(std::uint32_t number) {
    const Place& place = places_[number];
    if (place.node && !place.crashed) {
      ++reached_.gone_clients;
      place.node->replace_client(random_.below(PeerWorldNode::kClients));
    }
    finish_trouble();
  }
  void refuse_memory(std::uint32_t number) {
    const Place& place = places_[number];
    if (!place.node || place.crashed) return finish_trouble();
    ++reached_.refusals;
    place.node->refuse_memory(true);
    world_.after(random_.between(kWorldMs, 30 * kWorldMs), [this, number] {
      if (places_[number].node) places_[number].node->refuse_memory(false);
      finish_trouble();
    });
  }

  const PeerWorldOptions options_;
  base::Random random_;
  const fabric::sim::Faults usual_;
  fabric::sim::World world_;
  PeerHistory history_;
  PeerReached& reached_;
  PeerWorldParts parts_;
  std::vector<Place> places_;
  std::uint32_t sources_ = 0;
  std::uint32_t troubles_ = 0;  // that have not passed
  std::uint64_t turn_ns_ = kTurnNs;
  bool ending_ = false;
};

}  // namespace

std::string run_peer_world(std::uint64_t seed, const PeerWorldOptions& options,
                           PeerReached& reached) {
  PeerWorld world(seed, options, reached);
  return world.run();
}

}  // namespace espalier::test
