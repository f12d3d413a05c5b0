// SPDX-License-Identifier: Apache-2.0
// A client of a node over a fabric is served beside hostile peers (hostile_peer.hpp), and when
// these have gone nothing of them is left; over random seeds.
//
// 10 seeds; ESPALIER_SEEDS sets another number (docs/testing.md).
#include <gtest/gtest.h>

#include <deque>
#include <memory>

#include "base/testing/seeds.hpp"
#include "channel/rings/tests/testing/hostile_peer.hpp"
#include "channel/rings/tests/testing/link_world.hpp"
#include "channel/rings/tests/testing/simulated_machine.hpp"

namespace espalier::client {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
/// Time limit for the client's answers, in simulated time. Alone it takes about 2 ms.
constexpr std::uint64_t kServedMs = 100;
constexpr std::uint64_t kResumeMs = 500;
/// Time limit for the end of sessions that no client resumes: the node's timeout, its eight probes,
/// the time for a resumption, and the interval of its checks.
constexpr std::uint64_t kGoneMs = 20 + 20 + kResumeMs + 60;

LinkWorldOptions options_of(std::uint64_t seed, wire::LinkWay way) {
  LinkWorldOptions options;
  options.way = way;
  options.cuts = seed % 4 == 0;
  options.pauses = options.cuts;
  options.give_up_ms = options.cuts ? 4'000 : kServedMs;
  options.resume_ms = kResumeMs;
  options.sessions_max = seed % 2 == 0 ? 12 : 1'000;
  // So few that they run out.
  options.posts_max = seed % 3 == 0 ? 256 : 4'096;
  return options;
}

/// Some hostile peers beside the client, until go().
class Troop {
 public:
  Troop(LinkWorld& world, std::uint64_t seed) : world_(world), choices_(seed) {
    lore_.map = world.node().map();
    lore_.stolen = {world.first_token(), LinkWorld::kRings};
    const std::uint64_t count = choices_.between(1, 4);
    for (std::uint64_t i = 0; i < count; ++i) {
      peers_.emplace_back(simulated_machine(world.world(), "h" + std::to_string(i), "n"), lore_);
      go_on(peers_.back());
    }
  }
  /// Some close their connections, others do not.
  void go() {
    gone_ = true;
    for (HostilePeer& peer : peers_) {
      if (choices_.one_in(2)) peer.vanish();
      peer.hang_up();
    }
  }
  [[nodiscard]] const HostileLore& lore() const { return lore_; }

 private:
  void go_on(HostilePeer& peer) {
    if (gone_) return;
    peer.act(choices_);
    // A failed run ends before its world does.
    world_.world().after(choices_.below(10'000), [this, &peer, here = std::weak_ptr(here_)] {
      if (!here.expired()) go_on(peer);
    });
  }

  LinkWorld& world_;
  Choices choices_;
  HostileLore lore_;
  std::deque<HostilePeer> peers_;
  bool gone_ = false;
  std::shared_ptr<bool> here_ = std::make_shared<bool>(true);
};

/// Runs the world until a condition holds; false: it did not in time.
template <class Condition>
bool wait_until(LinkWorld& world, std::uint64_t ms, Condition condition) {
  const std::uint64_t end = world.world().now_ns() + ms * kNsPerMs;
  world.turn_every(50'000);  // nothing is urgent
  while (!condition() && world.world().now_ns() < end) {
    world.attend();
    world.world().run_for(kNsPerMs);
  }
  world.turn_every(LinkWorldOptions{}.tick_ns);
  return condition();
}

void add(HostileLore& all, const HostileLore& one) {
  all.dialled += one.dialled;
  all.accepted += one.accepted;
  all.rejected += one.rejected;
  all.took_over += one.took_over;
  all.ended += one.ended;
  all.vanished += one.vanished;
  all.answered += one.answered;
}

struct Reached {
  LinkReached link;
  HostileLore lore;
  std::uint64_t broken = 0;
  std::uint64_t expired = 0;
  std::uint64_t longest_ns = 0;  // until the client had all
};

/// Checks that nothing of the hostile peers is left, and then nothing at all. Returns what is
/// wrong.
std::string check_what_is_left(LinkWorld& world) {
  const auto& counts = world.clients().counts();
  const auto one_left = [&] { return counts.sessions == 1 && world.admitted() == 1; };
  if (!wait_until(world, kGoneMs, one_left)) {
    return std::to_string(counts.sessions) + " sessions are left";
  }
  LinkReached more;
  if (std::string wrong = world.work(30, more); !wrong.empty()) return "afterwards " + wrong;
  world.part();
  const auto none_left = [&] { return counts.sessions == 0 && world.admitted() == 0; };
  if (!wait_until(world, kGoneMs, none_left)) return "the client's session is left";
  offload::SchedulerFixture& node = world.node();
  if (!wait_until(world, 10, [&] { return node.scheduler().idle(); })) return "it is not idle";
  if (node.client_table().counts().connections != 0) return "connections are left";
  if (node.services().budget.used() != 0) return "memory of messages is left";
  if (node.core().store.reclaimer.waiting(node.core(), false).snapshots != 0) {
    return "a snapshot is held";
  }
  // The first place is free only if all of its page are.
  const auto doorbell = node.doorbells().open(1);
  if (!doorbell || doorbell->place != 0) return "a doorbell is left";
  node.doorbells().close(doorbell->place);
  return {};
}

std::string run(std::uint64_t seed, wire::LinkWay way, Reached& reached, std::uint64_t* trace,
                bool secrets = false) {
  LinkWorldOptions options = options_of(seed, way);
  options.secrets = secrets;
  LinkWorld world(seed, options);
  std::string wrong = world.connect();
  if (!wrong.empty()) return wrong;
  Troop troop(world, seed + 1);
  const std::uint64_t begin = world.world().now_ns();
  wrong = world.go_on(reached.link);
  if (!wrong.empty()) return wrong;
  // Without a failure of its own the client's pair stays up.
  if (!options.cuts && world.connection().resumed() != 0 && seed % 3 == 0) {
    return "the client's pair was ended";
  }
  if (!options.cuts) {
    reached.longest_ns = std::max(reached.longest_ns, world.world().now_ns() - begin);
  }
  world.world().run_for(2 * kNsPerMs);  // the peers continue for a while
  troop.go();
  wrong = check_what_is_left(world);
  add(reached.lore, troop.lore());
  reached.broken += world.clients().counts().broken;
  reached.expired += world.clients().counts().expired;
  if (trace != nullptr) *trace = world.world().trace();
  if (!wrong.empty()) return wrong;
  const auto unsound = world.node().audit();
  return unsound.empty() ? std::string() : unsound.front();
}

class HostileSeeds : public ::testing::TestWithParam<wire::LinkWay> {};

INSTANTIATE_TEST_SUITE_P(Ways, HostileSeeds,
                         ::testing::Values(wire::LinkWay::write, wire::LinkWay::send),
                         [](const auto& way) {
                           return std::string(way.param == wire::LinkWay::write ? "Write" : "Send");
                         });

TEST_P(HostileSeeds, AClientIsServedAndNothingOfThemIsLeft) {
  const std::uint64_t first = base::seed_from_environment(5000);
  Reached reached;
  const auto all_happened = [&] {
    const auto& lore = reached.lore;
    return lore.accepted != 0 && lore.rejected != 0 && lore.took_over != 0 && lore.ended != 0 &&
           lore.vanished != 0 && lore.answered != 0 && reached.broken != 0 && reached.expired != 0;
  };
  for (base::Seeds seeds(10); seeds.more(all_happened()); seeds.done()) {
    const std::uint64_t seed = first + seeds.ended();
    ASSERT_EQ(run(seed, GetParam(), reached, nullptr), "") << "seed " << seed;
  }
  EXPECT_GT(reached.lore.accepted, 0u);
  EXPECT_GT(reached.lore.rejected, 0u);
  EXPECT_GT(reached.lore.took_over, 0u);
  EXPECT_GT(reached.lore.ended, 0u);
  EXPECT_GT(reached.lore.vanished, 0u);
  EXPECT_GT(reached.lore.answered, 0u);
  EXPECT_GT(reached.broken, 0u);
  EXPECT_GT(reached.expired, 0u);
  RecordProperty("longest_ms", static_cast<int>(reached.longest_ns / kNsPerMs));
}

// Without a secret a peer gets no session, whatever it does.
TEST_P(HostileSeeds, WhereSecretsAreAskedTheyGetNothing) {
  const std::uint64_t first = base::seed_from_environment(6000);
  Reached reached;
  for (base::Seeds seeds(10); seeds.more(reached.lore.rejected != 0); seeds.done()) {
    const std::uint64_t seed = first + seeds.ended();
    ASSERT_EQ(run(seed, GetParam(), reached, nullptr, true), "") << "seed " << seed;
  }
  EXPECT_EQ(reached.lore.accepted, 0u);
  EXPECT_EQ(reached.lore.took_over, 0u);
  EXPECT_EQ(reached.lore.answered, 0u);
  EXPECT_EQ(reached.broken, 0u);
  EXPECT_GT(reached.lore.rejected, 0u);
}

TEST_P(HostileSeeds, ASeedRepeatsAllThatHappens) {
  for (const std::uint64_t seed : {5001u, 5002u, 5004u}) {
    Reached reached;
    std::uint64_t traces[2] = {};
    for (std::uint64_t& trace : traces) ASSERT_EQ(run(seed, GetParam(), reached, &trace), "");
    EXPECT_EQ(traces[0], traces[1]) << "seed " << seed;
  }
}

}  // namespace
}  // namespace espalier::client
