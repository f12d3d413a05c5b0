// SPDX-License-Identifier: Apache-2.0
// What a step may wait for, each by an offload of the test: a walk that begins within a walk, a
// helper, a version, a time; and that the end of a client leaves none of them behind.
#include "engine/scheduler.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "kinds/map/offload/walk_call.hpp"

namespace espalier::offload {
namespace {

constexpr auto kOwn = static_cast<wire::OffloadId>(wire::kOwnOffloadIds);

Offload own_offload(Next (*step)(Call&), const void* context = nullptr, bool map = false) {
  return {{.id = kOwn,
           .name = "own",
           .format = "anything",
           .summary = "answers",
           .limits = {.map = map, .key_bytes_max = 100, .payload_bytes_max = 1000}},
          {.step = step, .executor = map ? &kMapWalks : nullptr, .context = context}};
}

/// Counts its living instances, to check that states end with their requests.
struct CountedState {
  static inline int living = 0;
  CountedState() { ++living; }
  ~CountedState() { --living; }
  CountedState(const CountedState&) = delete;
  CountedState& operator=(const CountedState&) = delete;
  std::string text;
  int steps = 0;
};

// Gets the key, and then the key in its value: each walk begins inside the one before.
Next follow_keys(Call& call) {
  CountedState& state = call.state<CountedState>();
  const Completion* const found = ended_walk(call);
  if (found == nullptr) {
    new_walk(call, Op::get);
    return begin_walk(call);
  }
  if (!found->ok) return call.fail(found->error);
  if (!found->found) return call.answer({}, {state.text});
  state.text.assign(found->value);
  new_walk(call, Op::get).key = state.text;
  return begin_walk(call);
}

TEST(SchedulerWaits, AWalkMayBeginAnother) {
  const Offload own = own_offload(follow_keys, nullptr, true);
  SchedulerFixture node({}, std::uint64_t{1} << 20, {&own, 1});
  auto& client = node.connect();
  for (int i = 0; i < 9; ++i) {
    const std::string key = "k" + std::to_string(i);
    const std::string next = "k" + std::to_string(i + 1);
    ASSERT_TRUE(
        node.call(client, request_of(wire::OffloadId::put, node.map()), key, next).applied());
  }
  EXPECT_EQ(node.call(client, request_of(kOwn, node.map()), "k0").payload, "k9");
  EXPECT_EQ(CountedState::living, 0);
}

TEST(SchedulerWaits, AClientThatEndsLeavesNoWalkBehindThatWasToBeginInAnother) {
  const Offload own = own_offload(follow_keys, nullptr, true);
  SchedulerFixture node({}, std::uint64_t{1} << 20, {&own, 1});
  auto& witness = node.connect();
  // A cycle, which would be followed for ever.
  ASSERT_TRUE(node.call(witness, request_of(wire::OffloadId::put, node.map()), "a", "b").applied());
  ASSERT_TRUE(node.call(witness, request_of(wire::OffloadId::put, node.map()), "b", "a").applied());
  auto& client = node.connect();
  client->post(message_of(request_of(kOwn, node.map()), "a"));
  client->ring();
  node.turns(20);
  EXPECT_FALSE(node.scheduler().idle());
  EXPECT_EQ(CountedState::living, 1);
  node.disconnect(client);
  EXPECT_TRUE(node.run_until_idle());
  EXPECT_EQ(CountedState::living, 0);
  node.turn();
  EXPECT_TRUE(client.ended);
}

/// Executes one request in each of its turns.
class OneATurn final : public Executor {
 public:
  explicit OneATurn(Scheduler& scheduler) : scheduler_(scheduler) { turns = 0; }
  bool admit(Request&) override { return true; }
  bool turn() override {
    ++turns;
    if (waiting_.empty()) return false;
    Request& request = *waiting_.back();
    waiting_.pop_back();
    if (!waiting_.empty()) ask_for_turn();
    scheduler_.go_on_with(request, this);
    return true;
  }
  void make_room(std::size_t places) override { waiting_.reserve(places); }
  void drop(const Connection&) override {}
  void take(Request& request) {
    waiting_.push_back(&request);
    ask_for_turn();
  }

  static inline int turns = 0;

 private:
  Scheduler& scheduler_;
  std::vector<Request*> waiting_;
};

const ExecutorKind kOneATurn{[](const ExecutorContext& context) -> std::unique_ptr<Executor> {
  return std::make_unique<OneATurn>(context.scheduler);
}};

Next in_its_turn(Call& call) {
  if (call.from_executor() != nullptr) return call.answer({});
  static_cast<OneATurn&>(call.executor(kOneATurn)).take(call.request());
  return call.handed_over();
}

TEST(SchedulerExecutors, OneHasATurnWhenItAsksAndNoOther) {
  Offload own = own_offload(in_its_turn);
  own.executor = &kOneATurn;
  SchedulerFixture node({}, std::uint64_t{1} << 20, {&own, 1});
  auto& client = node.connect();
  node.turns(10);
  EXPECT_EQ(OneATurn::turns, 1) << "at its beginning it may have something";
  for (int i = 0; i < 3; ++i) client->post(message_of(request_of(kOwn)));
  client->ring();
  for (int i = 1; i <= 3; ++i) {
    node.turn();
    EXPECT_EQ(OneATurn::turns, 1 + i) << "what came, or was left, has the next turn";
    EXPECT_EQ(node.scheduler().in_flight(), 3u - static_cast<unsigned>(i));
  }
  node.turns(10);
  EXPECT_EQ(OneATurn::turns, 4) << "nothing was left";
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(node.wait(client).answers());
  // It does not see other executors' requests.
  ASSERT_TRUE(node.call(client, request_of(wire::OffloadId::put, node.map()), "k", "v").applied());
  EXPECT_EQ(OneATurn::turns, 4);
}

// Answers at the time in its context.
Next wait_for_time(Call& call) {
  CountedState& state = call.state<CountedState>();
  const auto& when = *static_cast<const std::uint64_t*>(call.offload().context);
  if (state.steps++ == 0) return call.at(when);
  return call.answer({}, {base::monotonic_ns() >= when ? "in time" : "too soon"});
}

TEST(SchedulerWaits, ATimeComesAndNotBefore) {
  std::uint64_t when = base::monotonic_ns() + 300'000'000;  // however slow the machine
  const Offload own = own_offload(wait_for_time, &when);
  SchedulerFixture node({}, std::uint64_t{1} << 20, {&own, 1});
  EXPECT_EQ(node.scheduler().sleep_limit_ns(), std::numeric_limits<std::uint64_t>::max());
  auto& client = node.connect();
  client->post(message_of(request_of(kOwn)));
  client->ring();
  node.turn();
  EXPECT_LE(node.scheduler().sleep_limit_ns(), 300'000'000u);
  while (base::monotonic_ns() < when) node.turn();
  EXPECT_EQ(node.wait(client).payload, "in time");
  when = 1;  // long ago
  EXPECT_EQ(node.call(client, request_of(kOwn)).payload, "in time");
  EXPECT_TRUE(node.scheduler().idle());
}

TEST(SchedulerWaits, AClientThatEndsIsNotKeptByATimeFarAway) {
  const std::uint64_t when = std::numeric_limits<std::uint64_t>::max();
  const Offload own = own_offload(wait_for_time, &when);
  SchedulerFixture node({}, std::uint64_t{1} << 20, {&own, 1});
  auto& client = node.connect();
  client->post(message_of(request_of(kOwn)));
  client->ring();
  node.turns(3);
  EXPECT_FALSE(node.scheduler().idle());
  node.disconnect(client);
  EXPECT_TRUE(client.ended);
  EXPECT_TRUE(node.scheduler().idle());
  EXPECT_EQ(CountedState::living, 0);
}

struct HelperWork {
  mutable std::atomic<bool> begun{false};  // set by the helper
  std::atomic<bool> may_end{true};
};

// Has a helper fill its state, while the client may disconnect.
Next ask_helper(Call& call) {
  CountedState& state = call.state<CountedState>();
  if (state.steps++ != 0) return call.answer({}, {state.text});
  const auto& work = *static_cast<const HelperWork*>(call.offload().context);
  return call.helper([&state, &work] {
    work.begun.store(true, std::memory_order_release);
    while (!work.may_end.load(std::memory_order_acquire)) std::this_thread::yield();
    state.text = "helped";
  });
}

TEST(SchedulerConcurrency, AHelperThatWorksForAClientThatEndedKeepsItsRequest) {
  HelperWork work;
  const Offload own = own_offload(ask_helper, &work);
  SchedulerFixture node({}, std::uint64_t{1} << 20, {&own, 1});
  auto& client = node.connect();
  EXPECT_EQ(node.call(client, request_of(kOwn)).payload, "helped");
  work.begun.store(false);
  work.may_end.store(false);
  client->post(message_of(request_of(kOwn)));
  client->ring();
  // Work that no helper has begun ends with its client.
  ASSERT_TRUE(node.run_until([&] { return work.begun.load(std::memory_order_acquire); }));
  node.disconnect(client);
  node.turns(10);
  EXPECT_FALSE(client.ended);
  EXPECT_EQ(CountedState::living, 1);
  work.may_end.store(true, std::memory_order_release);
  EXPECT_TRUE(node.run_until_idle());
  node.turn();
  EXPECT_TRUE(client.ended);
  EXPECT_EQ(CountedState::living, 0);
}

TEST(HandlerStateDeathTest, AStateIsOfOneTypeOnly) {
  HandlerState::Spares spares;
  HandlerState state;
  EXPECT_EQ(state.find<int>(), nullptr);
  state.make<int>(spares) = 7;
  EXPECT_EQ(*state.find<int>(), 7);
  EXPECT_DEATH(static_cast<void>(state.find<unsigned>()), "kType");
  state.clear(spares);
  EXPECT_EQ(state.find<unsigned>(), nullptr);
}

}  // namespace
}  // namespace espalier::offload
