// SPDX-License-Identifier: Apache-2.0
// The queue of a scheduler's requests on hash maps: many in flight are answered as a model says, in
// the order of their connection, in this turn or the next, also when maps or clients go meanwhile.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/barrier.hpp"
#include "base/bytes.hpp"
#include "base/random.hpp"
#include "catalog/testing/recording_sink.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "kinds/hash/audit.hpp"
#include "kinds/hash/hash_map.hpp"
#include "kinds/hash/offload/hash_queue.hpp"

namespace espalier::offload {
namespace {

using wire::OffloadId;

/// With room for the answers of all that one has in flight.
constexpr wire::ConnectionLayout kManyInFlight{1024, 1024, 1};

class HashQueueScene {
 public:
  std::shared_ptr<hash::HashMap> create(const std::string& name, const hash::HashOptions& options) {
    return hash::create_hash_map(hash::hash_store_of(node.catalog()), name, options).value();
  }
  void post(SchedulerClient& client, OffloadId offload, std::uint32_t map, std::uint32_t tag,
            std::string_view key, std::string_view payload = {}) {
    client->post(message_of(request_of(offload, map, tag), key, payload));
    client->ring();
  }
  /// Those that have come by now.
  static std::vector<Response> answers(SchedulerClient& client) {
    std::vector<Response> all;
    while (auto response = client->receive(0)) all.push_back(std::move(*response));
    return all;
  }
  /// So many, in the order in which they come; fewer where they do not.
  std::vector<Response> wait_all(SchedulerClient& client, std::size_t count) {
    std::vector<Response> all;
    EXPECT_TRUE(node.run_until([&] {
      for (Response& each : answers(client)) all.push_back(std::move(each));
      return all.size() >= count;
    }));
    return all;
  }
  /// Requires: no thread writes.
  [[nodiscard]] static std::string faults(const hash::HashMap& map) {
    std::string all;
    for (const std::string& fault : hash::audit(map).wrong) all += fault + "\n";
    return all;
  }

  SchedulerFixture node;
};

/// A client that predicts the answers to its requests when it sends them, because no other client
/// uses its keys and requests are executed in order.
class ModelClient {
 public:
  ModelClient(HashQueueScene& scene, std::uint32_t number)
      : scene_(scene), number_(number), client_(scene.node.connect(kManyInFlight)) {}

  void ask(base::Random& random, std::uint32_t map) {
    std::string key = std::to_string(number_);
    key.append(":").append(std::to_string(random.below(60)));
    const std::string value(random.below(100), static_cast<char>('a' + random.below(26)));
    auto& model = models_[map];
    const auto at = model.find(key);
    const bool found = at != model.end();
    Expected expected{static_cast<std::uint8_t>(found ? wire::kFound : 0), {}};
    const std::uint64_t kind = random.below(8);
    OffloadId offload = OffloadId::hash_get;
    if (kind < 4) {
      if (found) expected.payload = at->second;
    } else if (kind == 4) {
      offload = OffloadId::hash_put;
    } else if (kind == 5) {
      offload = OffloadId::hash_insert;
    } else if (kind == 6) {
      offload = OffloadId::hash_update;
    } else {
      offload = OffloadId::hash_erase;
    }
    const bool applies = kind == 4 || (kind == 5 && !found) || (kind >= 6 && found);
    if (applies) {
      expected.flags |= wire::kApplied;
      if (kind == 7) {
        model.erase(key);
      } else {
        model[key] = value;
      }
    }
    expected_.push_back(std::move(expected));
    const bool takes_value = kind >= 4 && kind != 7;
    scene_.post(client_, offload, map, static_cast<std::uint32_t>(asked_++), key,
                takes_value ? std::string_view(value) : std::string_view());
  }
  /// Compares what has come with what was expected.
  void take() {
    for (const Response& response : HashQueueScene::answers(client_)) {
      ASSERT_FALSE(expected_.empty());
      ASSERT_EQ(response.header.tag, answered_++) << "in the order in which they were asked";
      ASSERT_EQ(response.header.code, 0);
      ASSERT_EQ(response.header.flags, expected_.front().flags);
      ASSERT_EQ(std::string(response.payload.begin(), response.payload.end()),
                expected_.front().payload);
      expected_.pop_front();
    }
  }
  [[nodiscard]] std::size_t in_flight() const { return expected_.size(); }
  [[nodiscard]] std::size_t items() const {
    std::size_t all = 0;
    for (const auto& [map, model] : models_) all += model.size();
    return all;
  }

 private:
  struct Expected {
    std::uint8_t flags;
    std::string payload;
  };

  HashQueueScene& scene_;
  const std::uint32_t number_;
  SchedulerClient& client_;
  std::unordered_map<std::uint32_t, std::unordered_map<std::string, std::string>> models_;
  std::deque<Expected> expected_;
  std::uint64_t asked_ = 0;
  std::uint64_t answered_ = 0;
};

// Of several clients and maps, with few and with many in flight.
TEST(HashQueue, AnswersManyInFlightAsAModelDoes) {
  base::Random random(base::seed_from_environment(57));
  for (const std::size_t clients : {1u, 3u, 12u}) {
    HashQueueScene scene;
    const std::array maps{scene.create("a", {.partitions = 2}),
                          scene.create("b", {.partitions = 1, .versions = false})};
    std::deque<ModelClient> models;
    for (std::size_t i = 0; i < clients; ++i) {
      models.emplace_back(scene, static_cast<std::uint32_t>(i));
    }
    const auto some = random.between(1, 40);
    for (int round = 0; round < 600; ++round) {
      for (ModelClient& each : models) {
        const std::uint64_t wanted = random.below(random.below(10) == 0 ? 4 : some);
        while (each.in_flight() < wanted) each.ask(random, maps[random.below(2)]->id());
      }
      scene.node.turns(static_cast<int>(random.below(3)));
      for (ModelClient& each : models) {
        each.take();
        if (HasFatalFailure()) return;
      }
    }
    std::size_t items = 0;
    for (ModelClient& each : models) {
      ASSERT_TRUE(scene.node.run_until([&] {
        each.take();
        return HasFatalFailure() || each.in_flight() == 0;
      }));
      if (HasFatalFailure()) return;
      items += each.items();
    }
    ASSERT_TRUE(scene.node.run_until_idle());
    EXPECT_EQ(maps[0]->numbers().entries + maps[1]->numbers().entries, items);
    for (const auto& map : maps) EXPECT_EQ(HashQueueScene::faults(*map), "");
  }
}

// A get that stands behind a put is read after it, whatever was found ahead of both.
TEST(HashQueue, RequestsOfAConnectionHaveTheirTurnsInOrder) {
  HashQueueScene scene;
  const auto map = scene.create("h", {.partitions = 1});
  SchedulerClient& client = scene.node.connect(kManyInFlight);
  for (std::uint32_t i = 0; i < 100; ++i) {
    scene.post(client, OffloadId::hash_put, map->id(), 2 * i, "k", std::to_string(i));
    scene.post(client, OffloadId::hash_get, map->id(), 2 * i + 1, "k");
  }
  const std::vector<Response> answers = scene.wait_all(client, 200);
  ASSERT_EQ(answers.size(), 200u);
  for (std::uint32_t i = 0; i < answers.size(); ++i) {
    ASSERT_EQ(answers[i].header.tag, i);
    if (i % 2 == 1) {
      ASSERT_EQ(std::string(answers[i].payload.begin(), answers[i].payload.end()),
                std::to_string(i / 2));
    }
  }
}

TEST(HashQueue, FewHaveTheirTurnsAtOnceAndOthersInTheNext) {
  HashQueueScene scene;
  const auto map = scene.create("h", {});
  SchedulerClient& client = scene.node.connect(kManyInFlight);
  const auto ask = [&](std::size_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      scene.post(client, OffloadId::hash_get, map->id(), i, "k");
    }
  };
  for (const std::size_t few : {std::size_t{1}, HashQueue::kFew}) {
    ask(few);
    scene.node.turn();
    EXPECT_EQ(HashQueueScene::answers(client).size(), few);
  }
  const std::size_t more = HashQueue::kFew + 1;
  ask(more);
  scene.node.turn();
  EXPECT_TRUE(HashQueueScene::answers(client).empty());
  EXPECT_TRUE(scene.node.scheduler().has_news());
  scene.node.turn();
  EXPECT_EQ(HashQueueScene::answers(client).size(), more);
  // Requests that came before have their turn, whatever comes then.
  ask(more);
  scene.node.turn();
  ask(2 * more);
  scene.node.turn();
  EXPECT_EQ(HashQueueScene::answers(client).size(), more);
  scene.node.turn();
  EXPECT_EQ(HashQueueScene::answers(client).size(), 2 * more);
  EXPECT_TRUE(scene.node.scheduler().idle());
}

TEST(HashQueue, AMapMayBeDroppedWhileRequestsWaitForTheirTurn) {
  HashQueueScene scene;
  auto map = scene.create("h", {});
  const std::uint32_t id = map->id();
  SchedulerClient& client = scene.node.connect(kManyInFlight);
  constexpr std::uint32_t kAsked = 10;
  for (std::uint32_t i = 0; i < kAsked; ++i) {
    const bool reads = i % 2 == 0;
    scene.post(client, reads ? OffloadId::hash_get : OffloadId::hash_put, id, i, "k",
               reads ? "" : "v");
  }
  scene.node.turn();
  ASSERT_TRUE(HashQueueScene::answers(client).empty());
  const std::weak_ptr<hash::HashMap> dropped = map;
  map.reset();
  ASSERT_TRUE(scene.node.catalog().drop<hash::HashMap>("h"));
  ASSERT_TRUE(scene.node.run_until_idle());
  const std::vector<Response> answers = HashQueueScene::answers(client);
  ASSERT_EQ(answers.size(), kAsked);
  for (const Response& each : answers) {
    EXPECT_EQ(each.code(), Code::not_found);
    EXPECT_EQ(each.detail(), id);
  }
  EXPECT_TRUE(scene.node.run_until([&] { return dropped.expired(); })) << "it is freed";
}

TEST(HashQueue, AClientMayGoWhileItsRequestsWaitForTheirTurn) {
  HashQueueScene scene;
  const auto map = scene.create("h", {});
  SchedulerClient& other = scene.node.connect(kManyInFlight);
  for (int turns = 0; turns < 3; ++turns) {
    SchedulerClient& client = scene.node.connect(kManyInFlight);
    for (std::uint32_t i = 0; i < 12; ++i) {
      scene.post(client, OffloadId::hash_put, map->id(), i, std::to_string(i), "v");
      scene.post(other, OffloadId::hash_get, map->id(), i, std::to_string(i));
    }
    scene.node.turns(turns);
    scene.node.disconnect(client);
    EXPECT_EQ(scene.wait_all(other, 12).size(), 12u);
    ASSERT_TRUE(scene.node.run_until_idle());
    scene.node.turn();
    EXPECT_TRUE(client.ended);
  }
  EXPECT_EQ(HashQueueScene::faults(*map), "");
}

// What is not durable is not read, by those in the same batch least of all; and writes are answered
// once they are.
TEST(HashQueue, WritesOfARecordedMapAreAnsweredOnceTheyAreReleased) {
  HashQueueScene scene;
  const auto map = scene.create("h", {});
  catalog::RecordingSink sink(catalog::RecordingSink::Durable::by_hand);
  map->record_to(&sink);
  SchedulerClient& client = scene.node.connect(kManyInFlight);
  constexpr std::uint32_t kPairs = 8;
  for (std::uint32_t i = 0; i < kPairs; ++i) {
    const std::string key = std::to_string(i);
    scene.post(client, OffloadId::hash_put, map->id(), i, key, "v");
    scene.post(client, OffloadId::hash_get, map->id(), kPairs + i, key);
  }
  ASSERT_TRUE(scene.node.run_until([&] { return sink.count() == kPairs; }));
  scene.node.turns(3);
  std::vector<Response> answers = HashQueueScene::answers(client);
  ASSERT_EQ(answers.size(), kPairs) << "the gets";
  for (const Response& each : answers) {
    EXPECT_GE(each.header.tag, kPairs);
    EXPECT_EQ(each.header.flags, 0) << "nothing is released";
  }
  sink.make_durable(kPairs);
  ASSERT_TRUE(scene.node.run_until_idle());
  answers = HashQueueScene::answers(client);
  ASSERT_EQ(answers.size(), kPairs);
  for (const Response& each : answers) {
    EXPECT_LT(each.header.tag, kPairs);
    EXPECT_EQ(each.header.flags, wire::kApplied);
  }
  map->record_to(nullptr);
}

// --- beside other threads ------------------------------------------------------------------------

constexpr std::uint64_t kWatched = 64;

std::string watched_key(std::uint64_t i) { return "watched" + std::to_string(i); }

/// A number eight times over, so that a torn value shows.
std::string eightfold(std::uint64_t number) {
  std::string value(64, 0);
  for (int i = 0; i < 8; ++i) base::store_le(value.data() + 8 * i, number);
  return value;
}
std::uint64_t number_of(std::string_view value) {
  EXPECT_EQ(value.size(), 64u);
  if (value.size() != 64) return 0;
  const auto number = base::load_le<std::uint64_t>(value.data());
  for (int i = 1; i < 8; ++i) {
    EXPECT_EQ(base::load_le<std::uint64_t>(value.data() + 8 * i), number);
  }
  return number;
}

/// Says that a thread writes, as long as it lives.
class Writing {
 public:
  explicit Writing(std::atomic<bool>& flag) : flag_(flag) {}
  ~Writing() { flag_.store(false); }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

 private:
  std::atomic<bool>& flag_;
};

/// Counts half of the keys up, makes the map grow, and reads the other half.
void write_beside(hash::HashMap& map, std::uint64_t rounds, std::atomic<bool>& flag) {
  const Writing writing(flag);
  hash::HashThread thread = hash::HashThread::join(map.store()).value();
  std::vector<std::uint64_t> seen(kWatched);
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    for (std::uint64_t i = 0; i < kWatched; i += 2) {
      ASSERT_TRUE(map.put(thread, watched_key(i), eightfold(round)));
      ASSERT_TRUE(map.put(thread, "more" + std::to_string(round * kWatched + i), "m"));
      const auto value = map.get(thread, watched_key(i + 1));
      ASSERT_TRUE(value);
      if (!*value) continue;
      ASSERT_GE(number_of(**value), seen[i + 1]);
      seen[i + 1] = number_of(**value);
    }
  }
}

/// Asks for all keys again and again, many in flight, and counts the other half up, as long as the
/// other thread writes.
void ask_beside(HashQueueScene& scene, hash::HashMap& map, const std::atomic<bool>& writing) {
  SchedulerClient& client = scene.node.connect(kManyInFlight);
  std::vector<std::uint64_t> seen(kWatched);
  base::Random random(5);
  for (std::uint64_t round = 1, last = 0; last == 0; ++round) {
    last = writing.load() ? 0 : 1;
    std::vector<std::uint64_t> asked;
    const std::uint64_t count = random.between(1, 100);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t key = random.below(kWatched);
      const bool puts = key % 2 == 1 && random.below(2) == 0;
      const auto tag = static_cast<std::uint32_t>(asked.size());
      asked.push_back(puts ? kWatched : key);
      if (puts) {
        scene.post(client, OffloadId::hash_put, map.id(), tag, watched_key(key), eightfold(round));
      } else {
        scene.post(client, OffloadId::hash_get, map.id(), tag, watched_key(key));
      }
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      const Response response = scene.node.wait(client);
      ASSERT_EQ(response.header.code, 0);
      const std::uint64_t key = asked.at(response.header.tag);
      if (key == kWatched) continue;
      ASSERT_TRUE(response.found() || seen[key] == 0);
      if (!response.found()) continue;
      const std::uint64_t number =
          number_of(std::string(response.payload.begin(), response.payload.end()));
      ASSERT_GE(number, seen[key]) << "no value goes back";
      seen[key] = number;
    }
  }
}

TEST(HashQueueConcurrency, BatchesBesideAThreadThatWritesAndGrowsTheMap) {
  for (const bool versions : {true, false}) {
    HashQueueScene scene;
    const auto map = scene.create("h", {.partitions = 2, .versions = versions});
    const std::uint64_t rounds = base::kThreadSanitizer ? 20 : 150;
    std::atomic<bool> writing{true};
    std::thread writer([&] { write_beside(*map, rounds, writing); });
    ask_beside(scene, *map, writing);
    writer.join();
    EXPECT_EQ(HashQueueScene::faults(*map), "");
  }
}

}  // namespace
}  // namespace espalier::offload
