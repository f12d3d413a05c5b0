// SPDX-License-Identifier: Apache-2.0
// Writes of clients while the disk stalls: their answers wait, and hold no request, no place, no
// lane, and keep no worker awake; they complete in order, or with an error if they are lost.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.hpp"
#include "base/cpu.hpp"
#include "base/random.hpp"
#include "catalog/catalog.hpp"
#include "kinds/hash/format.hpp"
#include "kinds/map/format/node.hpp"
#include "kinds/map/write/map_core.hpp"
#include "tests/durability/durable_scheduler.hpp"

namespace espalier::offload {
namespace {

using wire::OffloadId;

class WaitingWrites : public testing::Test, public DurableScheduler {
 protected:
  /// A hash map of this name.
  std::uint32_t make_hash(std::string_view name) {
    const hash::HashShape shape{2, 1, 0, 0, 1 << 20};
    post(client_, OffloadId::hash_create, 0, name, base::bytes_of(shape));
    sink_.make_durable();
    return static_cast<std::uint32_t>(node_.wait(client_).header.version);
  }
  /// Makes all durable that comes, until so many answers have. Returns them.
  std::vector<Response> answers(SchedulerClient& client, std::size_t count) {
    std::vector<Response> all;
    for (int round = 0; all.size() < count && round < 1'000'000; ++round) {
      if (client->flush()) client->ring();
      sink_.make_durable();
      node_.turns(4);
      while (auto response = client->receive(0)) all.push_back(*std::move(response));
    }
    return all;
  }
  void expect_in_order(const std::vector<Response>& all, std::uint32_t first) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].header.tag, first + i);
      EXPECT_EQ(all[i].code(), Code::invalid);
    }
  }
};

TEST(WaitingWritesInOrder, AreAnsweredWhenTheyAreReleased) {
  EXPECT_EQ(what_is_wrong_with_waiting(), "");
}

TEST_F(WaitingWrites, OfOneClientHoldNoRequestUpToItsBound) {
  const std::uint32_t map = node_.map();
  constexpr std::uint32_t kWrites = 1200;
  const std::uint32_t most = node_.services().waiting_answers_max;
  ASSERT_LT(most, kWrites);
  for (std::uint32_t i = 0; i < kWrites; ++i) {
    send(client_, OffloadId::put, map, std::to_string(i), "value");
  }
  EXPECT_TRUE(falls_asleep(client_)) << "a stalled disk keeps a worker busy";
  EXPECT_EQ(sink_.count(), most);
  EXPECT_EQ(waiting(client_), most);
  EXPECT_EQ(node_.scheduler().in_flight(), 0u);
  EXPECT_EQ(node_.scheduler().places_taken(0), 0u);
  EXPECT_GE(client_.connection->share.used(), most * sizeof(WaitingAnswer));
  EXPECT_TRUE(is_silent(client_));
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(call(other_, OffloadId::get, map, "0").header.flags & wire::kFound, 0);
  }
  post(other_, OffloadId::put, map, "other", "value");
  EXPECT_EQ(sink_.count(), most + 1) << "others write";
  EXPECT_EQ(node_.scheduler().in_flight(), 0u);

  const std::vector<Response> all = answers(client_, kWrites);
  ASSERT_EQ(all.size(), kWrites);
  expect_in_order(all, 1);
  EXPECT_EQ(node_.scheduler().waiting_answers(), 0u);
  EXPECT_LE(client_.connection->share.used(), WaitingAnswers::kKept * sizeof(WaitingAnswer));
  EXPECT_EQ(tags(other_).size(), 1u);
  EXPECT_NE(call(other_, OffloadId::get, map, "0").header.flags & wire::kFound, 0);
}

// Writes with conditions, and of long values, went through lanes, of which a map has 32.
TEST_F(WaitingWrites, WithConditionsOrLongValuesHoldNoLane) {
  const std::uint32_t map = node_.map();
  const std::uint32_t hash = make_hash("h");
  const std::string value(2000, 'v');
  constexpr std::uint32_t kOfEach = 40;
  const std::size_t before = sink_.count();
  for (std::uint32_t i = 0; i < kOfEach; ++i) {
    const std::string key = "k" + std::to_string(i);
    wire::Comparison absent{};
    absent.kind = static_cast<std::uint8_t>(ConditionKind::absent);
    const std::string asks = std::string(base::bytes_of(absent)) + value;
    post(client_, OffloadId::put, map, "long" + key, value);
    post(client_, OffloadId::compare_and_set, map, key, asks);
    post(client_, OffloadId::hash_compare_and_set, hash, key, asks);
  }
  EXPECT_EQ(sink_.count(), before + 3 * kOfEach);
  EXPECT_TRUE(falls_asleep(client_));
  EXPECT_EQ(waiting(client_), 3 * kOfEach);
  EXPECT_EQ(node_.scheduler().in_flight(), 0u);
  // A failed condition reveals what may be lost.
  wire::Comparison absent{};
  absent.kind = static_cast<std::uint8_t>(ConditionKind::absent);
  post(other_, OffloadId::compare_and_set, map, "k0",
       std::string(base::bytes_of(absent)) + "other");
  EXPECT_TRUE(is_silent(other_));
  // A scan takes a lane.
  EXPECT_EQ(call(other_, OffloadId::scan, map, "").code(), Code::invalid);
  const std::vector<Response> all = answers(client_, 3 * kOfEach);
  ASSERT_EQ(all.size(), 3 * kOfEach);
  for (const Response& each : all) EXPECT_TRUE(each.applied());
  EXPECT_EQ(node_.wait(other_).code(), Code::condition_failed);
}

// Each adds to what is newest, and its answer waits.
TEST_F(WaitingWrites, ThatAddToOneKeyAllCount) {
  const std::uint32_t map = node_.map();
  const std::uint32_t hash = make_hash("h");
  const std::uint64_t amount = 3;
  constexpr std::uint32_t kAdds = 60;
  for (std::uint32_t i = 0; i < kAdds; ++i) {
    send(client_, OffloadId::add, map, "sum", base::bytes_of(amount));
    send(other_, OffloadId::hash_add, hash, "sum", base::bytes_of(amount));
  }
  EXPECT_TRUE(falls_asleep(client_));
  EXPECT_EQ(node_.scheduler().in_flight(), 0u);
  EXPECT_EQ(waiting(client_), kAdds);
  EXPECT_EQ(waiting(other_), kAdds);
  const std::vector<Response> all = answers(client_, kAdds);
  ASSERT_EQ(all.size(), kAdds);
  std::uint64_t sum = 0;
  ASSERT_EQ(all.back().payload.size(), sizeof sum);
  std::memcpy(&sum, all.back().payload.data(), sizeof sum);
  EXPECT_EQ(sum, kAdds * amount);
  ASSERT_EQ(answers(other_, kAdds).size(), kAdds);
}

TEST_F(WaitingWrites, OfAClientThatGoesAreDroppedAndOthersStay) {
  const std::uint32_t map = node_.map();
  SchedulerClient& goes = node_.connect(kManyRequests, 3);
  for (int i = 0; i < 100; ++i) {
    send(goes, OffloadId::put, map, "g" + std::to_string(i), "value");
    send(client_, OffloadId::put, map, "c" + std::to_string(i), "value");
  }
  ASSERT_TRUE(falls_asleep(client_));
  ASSERT_EQ(waiting(goes), 100u);
  ASSERT_EQ(node_.scheduler().waiting_answers(), 200u);
  const std::uint64_t budget = node_.services().budget.used();
  node_.disconnect(goes);
  EXPECT_TRUE(goes.ended) << "what waits keeps no connection";
  EXPECT_EQ(node_.scheduler().waiting_answers(), 100u);
  EXPECT_LT(node_.services().budget.used(), budget);
  EXPECT_EQ(answers(client_, 100).size(), 100u);
  EXPECT_NE(call(other_, OffloadId::get, map, "g99").header.flags & wire::kFound, 0)
      << "they were done";
}

// The map stays as long as answers refer to it.
TEST_F(WaitingWrites, OfAMapThatIsDroppedAreAnswered) {
  const std::uint32_t hash = make_hash("h");
  for (int i = 0; i < 10; ++i) {
    post(client_, OffloadId::hash_put, hash, std::to_string(i), "value");
  }
  post(other_, OffloadId::object_drop, 0, "h");
  node_.turns(2000);  // so that what is not used is let go
  const std::vector<Response> all = answers(client_, 10);
  ASSERT_EQ(all.size(), 10u);
  for (const Response& each : all) EXPECT_TRUE(each.applied());
}

TEST_F(WaitingWrites, WhereTheLogFailsAllAreTold) {
  const std::uint32_t map = node_.map();
  for (int i = 0; i < 300; ++i) send(client_, OffloadId::put, map, std::to_string(i), "value");
  ASSERT_TRUE(falls_asleep(client_));
  int wakes = 0;
  node_.scheduler().wake = [&wakes] { ++wakes; };
  sink_.make_durable(7);
  sink_.fail_all();
  EXPECT_EQ(wakes, 1);
  std::vector<Response> all;
  for (int round = 0; all.size() < 300 && round < 10'000; ++round) {
    node_.turn();
    while (auto response = client_->receive(0)) all.push_back(*std::move(response));
  }
  ASSERT_EQ(all.size(), 300u);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].header.tag, i + 1);
    EXPECT_EQ(all[i].code(), i < 7 ? Code::invalid : Code::system);
    const bool says_why = all[i].payload.find("a test has it fail") != std::string::npos;
    EXPECT_EQ(says_why, i >= 7);
  }
  EXPECT_EQ(node_.scheduler().waiting_answers(), 0u);
}

TEST_F(WaitingWrites, WithHopsHaveABoundOfTheirOwn) {
  const std::uint32_t map = node_.map();
  for (std::uint32_t i = 0; i < wire::kHopRequestsMax + 10; ++i) {
    send(client_, OffloadId::put, map, std::to_string(i), "value", 0, 1);
  }
  ASSERT_TRUE(falls_asleep(client_));
  EXPECT_EQ(sink_.count(), wire::kHopRequestsMax);
  EXPECT_EQ(node_.scheduler().in_flight(), 0u);
  EXPECT_EQ(answers(client_, wire::kHopRequestsMax + 10).size(), wire::kHopRequestsMax + 10);
}

// An invalid request has made no record, and depends on none.
TEST_F(WaitingWrites, OfOthersKeepNoAnswerBackThatTellsOfNothing) {
  post(client_, OffloadId::put, node_.map(), "key", "value");
  const std::uint64_t first = 7;
  post(client_, OffloadId::sequencer_create, 0, "numbers", base::bytes_of(first));
  EXPECT_TRUE(is_silent(client_));
  EXPECT_EQ(call(other_, OffloadId::sequencer_create, 0, "bad", "x").code(),
            Code::invalid_argument);
  EXPECT_EQ(call(other_, OffloadId::sequencer_create, 0, "", base::bytes_of(first)).code(),
            Code::invalid_argument);
  post(other_, OffloadId::sequencer_create, 0, "numbers", base::bytes_of(first));
  EXPECT_TRUE(is_silent(other_)) << "that the name is taken may be lost";
}

// While the log has no room for records, writes wait, and other requests are not affected.
TEST_F(WaitingWrites, ThatFindNoRoomForTheirRecordsWaitForSome) {
  const std::uint32_t map = node_.map();
  const std::uint32_t hash = make_hash("h");
  post(client_, OffloadId::put, map, "first", "value");
  const std::size_t before = sink_.count();
  sink_.refuse(true);
  const std::uint64_t amount = 5;
  const wire::BatchEntry entry{0, 1, 1, static_cast<std::uint8_t>(wire::BatchKind::put), 0};
  const std::string batch = std::string(base::bytes_of(entry)) + "bv";
  for (int round = 0; round < 2; ++round) {
    post(client_, OffloadId::put, map, "long", std::string(300 << 10, 'l'));
    post(client_, OffloadId::put, map, "key", "value");
    post(client_, OffloadId::add, map, "sum", base::bytes_of(amount));
    post(client_, OffloadId::write_batch, map, {}, batch, 1);
    post(client_, OffloadId::hash_put, hash, "key", "value");
    post(client_, OffloadId::hash_add, hash, "sum", base::bytes_of(amount));
    post(client_, OffloadId::transact, 0, {}, put_of("m", "txn", "value"), 1);
    if (round == 0) sink_.make_durable();  // from now on no write to the disk is in flight
    node_.turns(50);
  }
  EXPECT_EQ(sink_.count(), before);
  EXPECT_EQ(node_.scheduler().places_taken(0), 0u);
  EXPECT_EQ(tags(client_).size(), 1u) << "the one that had room";
  EXPECT_EQ(call(other_, OffloadId::get, map, "key").header.flags & wire::kFound, 0);

  SchedulerClient& goes = node_.connect(kManyRequests, 3);
  post(goes, OffloadId::put, map, "goes", "value");
  node_.disconnect(goes);
  EXPECT_TRUE(node_.run_until([&] { return goes.ended; })) << "it waits for no room";

  sink_.refuse(false);
  const std::vector<Response> all = answers(client_, 14);
  ASSERT_EQ(all.size(), 14u);
  for (const Response& each : all) EXPECT_EQ(each.code(), Code::invalid);
  EXPECT_EQ(sink_.count(), before + 14);
  const Response sum = call(other_, OffloadId::get, map, "sum");
  EXPECT_EQ(sum.payload, base::bytes_of(2 * amount));
}

// Nothing polls the disk: the worker sleeps until it is woken.
TEST_F(WaitingWrites, OfTransactionsLetTheWorkerSleep) {
  post(client_, OffloadId::transact, 0, {}, put_of("m", "txn", "value"), 1);
  ASSERT_EQ(sink_.count(), 1u);
  ASSERT_TRUE(falls_asleep(client_));
  EXPECT_EQ(node_.scheduler().sleep_limit_ns(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_TRUE(is_silent(client_));
  sink_.make_durable();
  EXPECT_EQ(node_.wait(client_).code(), Code::invalid);
}

// Releases are held for a moment, though all is durable: nothing announces their end.
TEST_F(WaitingWrites, ThatNoDiskKeepsBackAreLookedAtSoon) {
  const std::uint32_t map = node_.map();
  post(client_, OffloadId::put, map, "before", "value");
  sink_.make_durable();
  ASSERT_EQ(node_.wait(client_).code(), Code::invalid);
  memory::VersionClock& clock = node_.catalog().find<tree::MapCore>(map)->clock;
  const std::uint64_t older = clock.take();  // of a writer that has not finished
  post(client_, OffloadId::put, map, "key", "value");
  sink_.make_durable();
  node_.turns(20);
  EXPECT_TRUE(is_silent(client_)) << "an older version is not released";
  if (!node_.scheduler().has_news()) {
    EXPECT_LE(node_.scheduler().sleep_limit_ns(), 1'000'000u);
  }
  clock.done(older, 1);
  node_.turns(4);
  EXPECT_FALSE(is_silent(client_));
}

// Where there is no memory for the queue, requests keep their answers, and no places.
TEST(WaitingWritesWithoutMemory, AreKeptByTheirRequests) {
  DurableScheduler scene(4 * sizeof(WaitingAnswer) * 16);
  const std::uint32_t map = scene.node_.map();
  constexpr std::uint32_t kWrites = 200;
  for (std::uint32_t i = 0; i < kWrites; ++i) {
    scene.send(scene.client_, OffloadId::put, map, std::to_string(i), "value");
  }
  EXPECT_TRUE(scene.falls_asleep(scene.client_));
  EXPECT_EQ(scene.sink_.count(), kWrites);
  EXPECT_LT(scene.waiting(scene.client_), kWrites);
  EXPECT_EQ(scene.node_.scheduler().in_flight(), kWrites - scene.waiting(scene.client_));
  EXPECT_EQ(scene.node_.scheduler().places_taken(0), 0u);
  scene.sink_.make_durable();
  ASSERT_TRUE(scene.node_.run_until_idle());
  EXPECT_EQ(scene.tags(scene.client_).size(), kWrites);
}

/// A worker that sleeps as a node's does, but for longer than anything may take.
class SleepingWorker {
 public:
  static constexpr std::chrono::seconds kLongest{20};

  void wake() {
    const std::scoped_lock lock(mutex_);
    awake_ = true;
    changed_.notify_all();
  }
  /// False: it was not woken.
  bool is_woken(std::uint64_t limit_ns) {
    std::unique_lock lock(mutex_);
    const bool short_time = limit_ns < 1'000'000'000;
    const auto limit =
        short_time ? std::chrono::nanoseconds(limit_ns) : std::chrono::nanoseconds(kLongest);
    const bool woken = changed_.wait_for(lock, limit, [this] { return awake_; });
    awake_ = false;
    return woken || short_time;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool awake_ = false;
};

// The mark rises at any moment: before a worker checks it, while it falls asleep, and while it
// sleeps. After a missed rise it would sleep until its timeout.
TEST(WaitingWritesConcurrency, NoRiseOfTheMarkIsMissed) {
  constexpr std::uint32_t kWrites = 3'000;
  DurableScheduler scene;
  SleepingWorker sleeper;
  scene.node_.scheduler().wake = [&sleeper] { sleeper.wake(); };
  std::atomic<bool> over = false;
  base::Random random{base::seed_from_environment(41)};
  std::thread disk([&, seed = random()] {
    base::Random pauses{seed};
    while (!over) {
      for (std::uint64_t left = pauses.below(2'000); left != 0; --left) base::spin_pause();
      scene.sink_.make_durable();
      std::this_thread::yield();
    }
  });
  std::uint32_t sent = 0;
  std::uint32_t answered = 0;
  bool slept_through = false;
  while (answered < kWrites && !slept_through) {
    const std::uint64_t together = 1 + random.below(4);
    for (std::uint64_t i = 0; i < together && sent < kWrites; ++i, ++sent) {
      scene.send(scene.client_, OffloadId::put, scene.node_.map(), std::to_string(sent % 50), "v");
    }
    while (answered < sent && !slept_through) {
      if (!scene.node_.turn() && !scene.node_.scheduler().has_news()) {
        slept_through = !sleeper.is_woken(scene.node_.scheduler().sleep_limit_ns());
      }
      answered += static_cast<std::uint32_t>(scene.tags(scene.client_).size());
    }
  }
  over = true;
  disk.join();
  EXPECT_FALSE(slept_through);
  EXPECT_EQ(answered, kWrites);
}

}  // namespace
}  // namespace espalier::offload
