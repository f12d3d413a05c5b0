// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a peer's behaviour towards a node over a fabric: hellos, tokens, slots, notes,
// credits, WRITEs to anywhere, ends (hostile_peer.hpp). A client beside the peer is served through
// the pair that it had, and when the peer has gone nothing of it is left.
//
// Input: how long the peer waits and its choices, each in as few bytes as possible.
#include <memory>
#include <string>

#include "base/testing/fuzz_input.hpp"
#include "channel/rings/tests/testing/hostile_peer.hpp"
#include "channel/rings/tests/testing/link_world.hpp"
#include "channel/rings/tests/testing/simulated_machine.hpp"

namespace espalier::client {
namespace {

using base::want;

constexpr std::uint64_t kMs = 1'000'000;
constexpr int kActsMax = 120;
constexpr int kInputsOfAWorld = 64;

LinkWorldOptions options() {
  LinkWorldOptions options;
  options.cuts = false;
  options.give_up_ms = 100;
  options.tick_ns = 20'000;
  options.resume_ms = 1;
  options.sessions_max = 12;
  options.posts_max = 256;
  return options;
}

/// A node and a correct client. They serve several inputs, since they take long to make; an input's
/// peer cannot detect how many came before.
struct World {
  World() : links(3, options()) {
    want(links.connect().empty(), "the client cannot connect");
    lore.map = links.node().map();
    lore.stolen = {links.first_token(), LinkWorld::kRings};
  }
  LinkWorld links;
  HostileLore lore;
  int inputs = 0;
};

World& world_for_an_input() {
  static std::unique_ptr<World> world;
  if (world != nullptr && world->inputs == kInputsOfAWorld) world.reset();
  if (world == nullptr) world = std::make_unique<World>();
  ++world->inputs;
  world->lore.own.clear();
  return *world;
}

void serve(World& world) {
  LinkReached reached;
  const std::string wrong = world.links.work(4, reached);
  want(wrong.empty(), wrong.c_str());
  want(world.links.connection().resumed() == 0, "the client's pair was ended");
}

void check_what_is_left(World& world) {
  LinkWorld& links = world.links;
  const auto& counts = links.clients().counts();
  links.turn_every(200'000);  // nothing is urgent
  const std::uint64_t end = links.world().now_ns() + 100 * kMs;
  while (counts.sessions != 1 && links.world().now_ns() < end) links.world().run_for(kMs);
  want(counts.sessions == 1 && links.admitted() == 1, "a session is left");
  offload::SchedulerFixture& node = links.node();
  while (!node.scheduler().idle() && links.world().now_ns() < end) links.world().run_for(kMs);
  want(node.scheduler().idle(), "something stays in flight");
  links.world().run_for(kMs);
  links.turn_every(options().tick_ns);
  want(node.client_table().counts().connections == 1, "a connection is left");
  want(node.services().budget.used() == 0, "the memory of a message is lost");
  want(node.core().store.reclaimer.waiting(node.core(), false).snapshots == 0,
       "a snapshot stays held");
  if (world.inputs == kInputsOfAWorld) want(node.audit().empty(), "the map is not sound");
}

void run(Choices choices) {
  World& world = world_for_an_input();
  fabric::sim::World& fabric = world.links.world();
  {
    HostilePeer peer(simulated_machine(fabric, "h" + std::to_string(world.inputs), "n"),
                     world.lore);
    for (int acts = 0; acts < kActsMax && !choices.over(); ++acts) {
      peer.act(choices);
      fabric.run_for(2'000 * choices.below(32));
    }
    serve(world);
  }
  check_what_is_left(world);
  serve(world);
}

}  // namespace
}  // namespace espalier::client

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::client::run({data, size});
  return 0;
}
