// SPDX-License-Identifier: Apache-2.0
#include "fabric/testing/fabric_fixture.hpp"

#include "base/clock.hpp"

namespace espalier::fabric {
namespace {

// Nothing that is tested takes seconds but on a machine that is far too busy; this only makes a
// test that hangs say where.
constexpr std::uint64_t kTimeoutNs = 200'000'000'000;

}  // namespace

FabricScene::FabricScene(const FabricTransport& transport, std::uint64_t seed)
    : random(seed),
      link(transport.make(seed)),
      near_queue(link->near(), kQueueCapacity),
      far_queue(link->far(), kQueueCapacity),
      far_memory(link->memory(kRegionBytes)),
      region(offer()) {}

void FabricScene::await(const std::function<bool()>& done) {
  const base::Stopwatch watch;
  for (std::uint64_t turns = 1; !done(); ++turns) {
    link->turn();
    if (turns % 1024 == 0 && watch.elapsed_ns() > kTimeoutNs) {
      FAIL() << "waited in vain for " << turns << " turns";
    }
  }
}

void FabricScene::idle(int turns) {
  for (int i = 0; i < turns; ++i) link->turn();
}

ConnectedPair FabricScene::connect(QueuePairOptions near, QueuePairOptions far) {
  near.sends = near.sends == nullptr ? &near_queue : near.sends;
  far.sends = far.sends == nullptr ? &far_queue : far.sends;
  ConnectedPair pair;
  auto connecting = link->near().connect(link->address(), near, {});
  EXPECT_TRUE(connecting) << message(connecting.error());
  if (!connecting) return pair;
  pair.near = std::move(*connecting);
  await([&] {
    if (pair.near->state() == QueuePair::State::error) return true;
    if (const auto request = link->far().next_request()) {
      auto accepted = link->far().accept(*request, far, {});
      EXPECT_TRUE(accepted) << message(accepted.error());
      if (accepted) pair.far = std::move(*accepted);
    }
    return pair.far && pair.near->state() == QueuePair::State::connected &&
           pair.far->state() == QueuePair::State::connected;
  });
  EXPECT_EQ(pair.near->state(), QueuePair::State::connected) << name(pair.near->ended_by());
  return pair;
}

std::vector<Completion> FabricScene::take(CompletionQueue& queue, std::size_t count) {
  std::vector<Completion> taken(count);
  std::size_t have = 0;
  await([&] {
    have += queue.poll(std::span(taken).subspan(have));
    return have == count;
  });
  taken.resize(have);
  return taken;
}

Completion FabricScene::run(QueuePair& pair, const WorkRequest& request) {
  EXPECT_EQ(pair.post(request).taken, 1u);
  CompletionQueue& queue = near_queue;
  std::vector<Completion> ended = take(queue, 1);
  if (ended.empty()) return {};
  EXPECT_EQ(ended[0].work_id, request.work_id);
  EXPECT_EQ(ended[0].pair, pair.number());
  EXPECT_EQ(ended[0].opcode, request.opcode);
  return ended[0];
}

}  // namespace espalier::fabric
