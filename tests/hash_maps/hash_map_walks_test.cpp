// SPDX-License-Identifier: Apache-2.0
// Iteration over a hash map, and many requests in flight, over each channel.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "tests/hash_maps/hash_map_fixture.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {
namespace {

/// Counts how often each key comes, and with what.
struct Seen {
  std::map<std::string, std::string> items;
  std::uint64_t count = 0;

  [[nodiscard]] static Result<Seen> by_walk_of(const HashMap& map) {
    Seen seen;
    const auto walked = map.walk([&](std::span<const Item> items) {
      for (const Item& item : items) seen.items[std::string(item.key)] = std::string(item.value);
      seen.count += items.size();
      return true;
    });
    if (!walked) return std::unexpected(walked.error());
    EXPECT_EQ(*walked, seen.count);
    return seen;
  }
};

TEST_P(HashMapOverEachWay, AWalkDeliversEachItemOnce) {
  for (const bool versions : {true, false}) {
    auto map = store_->create_hash_map(versions ? "with" : "without",
                                       {.partitions = 2, .versions = versions});
    ASSERT_TRUE(map);
    EXPECT_EQ(Seen::by_walk_of(*map)->count, 0u);
    std::map<std::string, std::string> model;
    const auto put = [&](const std::string& key, std::size_t bytes) {
      model[key] = std::string(bytes, static_cast<char>('a' + model.size() % 26));
      ASSERT_TRUE(map->put(key, model[key]));
    };
    for (int i = 0; i < 3000; ++i) put("key" + std::to_string(i), 48);
    // Both sides of what a piece carries, and of what is longer than a piece.
    for (const std::size_t bytes : {0u, 5000u, 65535u, 65536u, 65537u, 300u << 10}) {
      put("long" + std::to_string(bytes), bytes);
    }
    put(std::string(HashMap::kKeyBytesMax, 'k'), 70'000);
    for (int i = 0; i < 3000; i += 3) {
      model.erase("key" + std::to_string(i));
      ASSERT_TRUE(map->erase("key" + std::to_string(i)));
    }
    const auto seen = Seen::by_walk_of(*map);
    ASSERT_TRUE(seen) << message(seen.error());
    EXPECT_EQ(seen->count, model.size());
    EXPECT_TRUE(seen->items == model);
    std::uint64_t taken = 0;
    const auto few = map->walk([&](std::span<const Item> items) {
      taken += items.size();
      return taken < 100;
    });
    ASSERT_TRUE(few);
    EXPECT_EQ(*few, taken);
    EXPECT_LT(*few, model.size());
  }
}

TEST_P(HashMapOverEachWay, AWalkOfADroppedOneEnds) {
  auto map = store_->create_hash_map("h", {.partitions = 2});
  ASSERT_TRUE(map);
  for (int i = 0; i < 4000; ++i) ASSERT_TRUE(map->put("key" + std::to_string(i), "v"));
  bool dropped = false;
  const auto walked = map->walk([&](std::span<const Item>) {
    if (!std::exchange(dropped, true)) {
      EXPECT_TRUE(store_->drop_hash_map("h"));
    }
    return true;
  });
  ASSERT_FALSE(walked);
  EXPECT_EQ(walked.error().code, Code::not_found);
  EXPECT_EQ(map->walk([](std::span<const Item>) { return true; }).error().code, Code::not_found);
}

/// Keeps what each request came to, by its tag.
struct ByTag final : Handler {
  struct One {
    int times = 0;
    Completion completion{};
    std::string value;
  };
  explicit ByTag(std::size_t count) : all(count) {}
  void done(const Completion& completion) override {
    One& one = all.at(completion.tag);
    ++one.times;
    one.value = completion.value;
    one.completion = completion;
    one.completion.value = {};
  }
  std::vector<One> all;
};

TEST_P(HashMapOverEachWay, APipelineAnswersWhatSingleCallsWould) {
  base::Random random(seed_from_environment(41));
  auto map = store_->create_hash_map("h", {.partitions = 4});
  ASSERT_TRUE(map);
  for (const std::uint32_t in_flight : {1u, 2u, 9u, 32u, 256u}) {
    auto pipeline = Pipeline::open(*map, in_flight);
    ASSERT_TRUE(pipeline) << message(pipeline.error());
    // Each key once in a round, for those of one call are concurrent.
    for (int round = 0; round < 8; ++round) {
      std::vector<std::string> keys;
      for (int i = 0; i < 150; ++i) keys.push_back("key" + std::to_string(i));
      std::vector<Request> requests;
      std::vector<std::optional<std::string>> before;
      for (const std::string& key : keys) {
        Request request;
        request.op = static_cast<Op>(1 + random.below(5));
        request.tag = requests.size();
        request.key = key;
        if (request.op != Op::get && request.op != Op::erase) request.value = key;
        requests.push_back(request);
        const auto found = map->get(key);
        ASSERT_TRUE(found);
        before.push_back(*found ? std::optional((*found)->value) : std::nullopt);
      }
      ByTag kept(requests.size());
      const std::size_t first = random.below(requests.size());
      pipeline->submit(std::span(requests).first(first), kept);
      static_cast<void>(pipeline->advance());
      pipeline->submit(std::span(requests).subspan(first), kept);
      while (pipeline->poll() != 0) {
      }
      for (std::size_t i = 0; i < requests.size(); ++i) {
        const ByTag::One& one = kept.all[i];
        ASSERT_EQ(one.times, 1) << i;
        ASSERT_TRUE(one.completion.ok) << message(one.completion.error);
        ASSERT_EQ(one.completion.op, requests[i].op);
        ASSERT_EQ(one.completion.found, before[i].has_value());
        const bool reads = requests[i].op == Op::get;
        if (reads) {
          ASSERT_EQ(one.value, before[i].value_or(""));
        }
        const bool applies = !reads && (requests[i].op == Op::put ||
                                        (requests[i].op == Op::insert) != before[i].has_value());
        ASSERT_EQ(one.completion.applied, applies);
        const auto now = map->get(keys[i]);
        ASSERT_TRUE(now);
        if (applies) {
          ASSERT_EQ(now->has_value(), requests[i].op != Op::erase);
        }
        if (!applies) {
          ASSERT_EQ(now->has_value(), before[i].has_value());
        }
      }
    }
  }
  EXPECT_EQ(audit("h"), std::vector<std::string>{});
}

TEST_P(HashMapOverEachWay, APipelineRefusesWhatItsMapCannotDo) {
  auto map = store_->create_hash_map("h");
  ASSERT_TRUE(map && map->put("k", "v"));
  EXPECT_EQ(Pipeline::open(*map, 0).error().code, Code::invalid_argument);
  EXPECT_EQ(Pipeline::open(*map, 257).error().code, Code::invalid_argument);
  auto pipeline = Pipeline::open(*map);
  ASSERT_TRUE(pipeline);
  const std::string long_key(HashMap::kKeyBytesMax + 1, 'k');
  const std::string long_value(HashMap::kValueBytesMax + 1, 'v');
  const std::vector<std::pair<Request, Code>> asked = {
      {{Op::floor, 0, 0, "k", {}, {}}, Code::unsupported},
      {{Op::scan, 0, 1, "", "", {}}, Code::unsupported},
      {{Op::scan_reverse, 0, 2, "a", "b", {}}, Code::unsupported},
      {{Op::scan_floor, 0, 3, "a", "b", {}}, Code::unsupported},
      {{Op::invalid, 0, 4, "k", {}, {}}, Code::invalid_argument},
      {{Op::get, 0, 5, "", {}, {}}, Code::key_too_long},
      {{Op::put, 0, 6, long_key, {}, "v"}, Code::key_too_long},
      {{Op::put, 0, 7, "k", {}, long_value}, Code::value_too_long},
  };
  std::vector<Request> requests;
  for (const auto& one : asked) requests.push_back(one.first);
  ByTag kept(requests.size());
  pipeline->run(requests, kept);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    EXPECT_EQ(kept.all[i].times, 1);
    EXPECT_FALSE(kept.all[i].completion.ok) << i;
    EXPECT_EQ(kept.all[i].completion.error.code, asked[i].second) << i;
  }
  ASSERT_TRUE(store_->drop_hash_map("h"));
  const std::vector<Request> late = {{Op::get, 0, 0, "k", {}, {}}, {Op::put, 0, 1, "k", {}, "w"}};
  ByTag after(late.size());
  pipeline->run(late, after);
  for (const ByTag::One& one : after.all) EXPECT_EQ(one.completion.error.code, Code::not_found);
}

// A pipeline's destructor completes its requests in flight.
TEST_P(HashMapOverEachWay, APipelineThatEndsCompletesWhatItHas) {
  auto map = store_->create_hash_map("h");
  ASSERT_TRUE(map);
  const std::vector<Request> requests(20, Request{Op::put, 0, 0, "k", {}, "v"});
  ByTag kept(1);
  {
    auto pipeline = Pipeline::open(*map);
    ASSERT_TRUE(pipeline);
    pipeline->submit(requests, kept);
    static_cast<void>(pipeline->advance());
  }
  EXPECT_EQ(kept.all[0].times, 20);
  EXPECT_EQ(map->get("k").value()->value, "v");
}

}  // namespace
}  // namespace espalier::test
