// SPDX-License-Identifier: Apache-2.0
// Random mixes of flows, greedy ones and others that come and go, served by several servers on a
// virtual clock. The bounds that fair_queue.hpp states must hold in every interval of every mix.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <queue>
#include <tuple>
#include <vector>

#include "base/random.hpp"
#include "engine/fair_queue.hpp"

namespace espalier::offload {
namespace {

struct SimFlow {
  FairQueue::Flow flow;
  std::deque<FairQueue::Item> items;
  std::uint64_t step_min = 1;
  std::uint64_t step_max = 1;
  std::uint64_t pause_max = 0;  // 0: greedy, always ready
  std::uint64_t at_last_pop = 0;
  [[nodiscard]] bool greedy() const { return pause_max == 0; }
};

/// What a run found, in nanoseconds over the bound; not above 0 if all is well.
struct Excess {
  std::int64_t ahead = std::numeric_limits<std::int64_t>::min();
  std::int64_t starved = std::numeric_limits<std::int64_t>::min();
};

class World {
 public:
  World(std::uint64_t seed, std::uint64_t servers)
      : random_(seed), servers_(servers), quantum_(random_.between(20, 400)), queue_(quantum_) {
    const std::uint64_t flows = random_.between(2, 8);
    for (std::uint64_t i = 0; i < flows; ++i) add_flow(i < 2 || random_.chance(0.3));
    low_.assign(flows * flows, 0);
  }

  void run(std::uint64_t steps) {
    for (const auto& flow : flows_) {
      for (FairQueue::Item& item : flow->items) queue_.push(item);
    }
    std::uint64_t idle = servers_;
    while (steps != 0) {
      for (; idle != 0; --idle) {
        if (!begin_step()) break;
        --steps;
        if (steps == 0) return;
      }
      const auto [at, ends, flow, item] = events_.top();
      events_.pop();
      now_ = at;
      if (ends) {
        ++idle;
        end_step(*flows_[flow], flow, *item, at);
      } else {
        queue_.push(*item);
      }
    }
  }

  [[nodiscard]] Excess excess() const { return excess_; }
  [[nodiscard]] std::uint64_t served_ns(std::size_t flow) const {
    return flows_[flow]->flow.served_ns();
  }

 private:
  // when; whether a step ends, else an item becomes ready; its flow; the item
  using Event = std::tuple<std::uint64_t, bool, std::size_t, FairQueue::Item*>;

  void add_flow(bool greedy) {
    auto flow = std::make_unique<SimFlow>();
    flow->step_max = random_.chance(0.2) ? random_.between(1, 4000) : random_.between(1, 300);
    flow->step_min = random_.between(1, flow->step_max);
    if (!greedy) flow->pause_max = random_.between(1, 5000);
    // So many that one is ready on each server, whatever is running.
    const std::uint64_t items = greedy ? 2 * servers_ + random_.below(10) : random_.between(1, 3);
    for (std::uint64_t i = 0; i < items; ++i) flow->items.emplace_back(flow->flow);
    flows_.push_back(std::move(flow));
  }

  bool begin_step() {
    FairQueue::Item* const item = queue_.pop();
    if (item == nullptr) return false;
    std::size_t at = 0;
    while (&flows_[at]->flow != &item->flow()) ++at;
    SimFlow& flow = *flows_[at];
    if (flow.greedy()) check_starvation(flow);
    const std::uint64_t takes = random_.between(flow.step_min, flow.step_max);
    events_.emplace(now_ + takes, true, at, item);
    lengths_[item] = takes;
    return true;
  }

  void end_step(SimFlow& flow, std::size_t number, FairQueue::Item& item, std::uint64_t at) {
    const bool pauses = !flow.greedy() && random_.chance(0.3);
    queue_.charge(item, lengths_[&item], !pauses);
    served_ += lengths_[&item];
    if (pauses) events_.emplace(at + random_.between(1, flow.pause_max), false, number, &item);
    for (std::size_t other = 0; other < flows_.size(); ++other) {
      check_ahead(number, other);
      check_ahead(other, number);
    }
  }

  // No flow gains more than the bound on a greedy one, from any moment to any later one.
  void check_ahead(std::size_t flow, std::size_t greedy) {
    if (flow == greedy || !flows_[greedy]->greedy()) return;
    const auto gap = static_cast<std::int64_t>(served_ns(flow) - served_ns(greedy));
    std::int64_t& low = low_[flow * flows_.size() + greedy];
    low = std::min(low, gap);
    // Of a flow that is not always ready, steps that run when the interval begins come on top: they
    // are charged within it, with the rounds that they missed.
    const std::uint64_t own = flows_[flow]->step_max * (flows_[flow]->greedy() ? 1 : 2);
    const std::uint64_t bound = 2 * quantum_ + servers_ * (own + flows_[greedy]->step_max);
    excess_.ahead = std::max(excess_.ahead, gap - low - static_cast<std::int64_t>(bound));
  }

  // Between two of its steps the others get what the rounds give them that pay its debt.
  void check_starvation(SimFlow& flow) {
    const std::uint64_t others = served_ - flow.flow.served_ns();
    const std::uint64_t rounds = servers_ * flow.step_max / quantum_ + 2;
    std::uint64_t bound = 0;
    for (const auto& other : flows_) {
      if (other.get() != &flow) bound += (rounds + 1) * quantum_ + servers_ * other->step_max;
    }
    excess_.starved =
        std::max(excess_.starved, static_cast<std::int64_t>(others - flow.at_last_pop - bound));
    flow.at_last_pop = others;
  }

  base::Random random_;
  std::uint64_t servers_;
  std::uint64_t quantum_;
  FairQueue queue_;
  std::vector<std::unique_ptr<SimFlow>> flows_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::map<const FairQueue::Item*, std::uint64_t> lengths_;
  std::vector<std::int64_t> low_;  // of the gap between two flows, until now
  std::uint64_t now_ = 0;
  std::uint64_t served_ = 0;
  Excess excess_;
};

class FairQueueRandom : public testing::TestWithParam<std::uint64_t> {};

TEST_P(FairQueueRandom, NoFlowGainsMoreThanTheBoundAndNoneStarves) {
  base::Random seeds(base::seed_from_environment(1));
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t seed = seeds();
    World world(seed, GetParam());
    world.run(2000);
    ASSERT_LE(world.excess().ahead, 0) << "seed " << seed;
    ASSERT_LE(world.excess().starved, 0) << "seed " << seed;
    ASSERT_GT(world.served_ns(0), 0u) << "seed " << seed;
    ASSERT_GT(world.served_ns(1), 0u) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Servers, FairQueueRandom, testing::Values(1, 2, 4),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace espalier::offload
