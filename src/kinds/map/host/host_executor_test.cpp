// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/host/host_executor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kinds/map/testing/tree_fixture.hpp"

namespace espalier::tree {
namespace {

TEST(HostExecutor, AWalkAtAnExpiredVersionIsRefused) {
  TreeFixture tree({.node_bytes = 512});
  MapCore& map = tree.map();
  memory::Reclaimer& reclaimer = tree.store().reclaimer;
  const Request get = TreeFixture::request(Op::get, "key");
  tree.put("key", "before");
  const auto held = reclaimer.hold(map, map.clock.released());
  for (int i = 0; i < 200; ++i) tree.put("key", "after" + std::to_string(i));
  for (int i = 0; i < 4; ++i) reclaimer.collect(tree.context().cache);
  const OneAnswer before = tree.run(get, *held);
  EXPECT_TRUE(before.completion.ok);
  EXPECT_EQ(before.value, "before");
  ASSERT_TRUE(reclaimer.expire_oldest());
  const OneAnswer after = tree.run(get, *held);
  EXPECT_FALSE(after.completion.ok);
  EXPECT_EQ(after.completion.error.code, Code::snapshot_expired);
  reclaimer.drop(map, held);
}

/// Counts what is found of many requests.
class Found final : public Handler {
 public:
  void done(const Completion& done) override {
    ++answered;
    found += done.found ? 1 : 0;
    failed += done.ok ? 0 : 1;
  }
  bool items(std::uint64_t, std::span<const Item>) override { return true; }
  std::uint64_t answered = 0;
  std::uint64_t found = 0;
  std::uint64_t failed = 0;
};

/// Many requests in flight on the map of a fixture.
class Crowd {
 public:
  explicit Crowd(TreeFixture& tree)
      : executor_(tree.context(), tree.map(), 32, [&tree](std::uint32_t, base::ReadyQueue& queue) {
          return HostAccess(tree.map().base, queue, false, &kNever);
        }) {}
  /// Asks for all of these at once; returns how many choices of a leaf were wrong.
  std::uint64_t ask(Op op, const std::vector<std::string>& keys, Found& found) {
    std::vector<Request> requests;
    for (const std::string& key : keys) requests.push_back(TreeFixture::request(op, key, "v"));
    const std::uint64_t before = executor_.wrong_choices();
    executor_.submit(requests, found);
    executor_.drain();
    return executor_.wrong_choices() - before;
  }
  /// The same one after the other, each by a path of its own.
  std::uint64_t get_each(const std::vector<std::string>& keys, Found& found) {
    const std::uint64_t before = executor_.wrong_choices();
    for (const std::string& key : keys) {
      Completion answer;
      answer.ok = executor_.read_one(key, answer);
      found.done(answer);
      executor_.let_go();
    }
    return executor_.wrong_choices() - before;
  }

 private:
  static constexpr bool kNever = false;
  HostExecutor<HostAccess> executor_;
};

std::string behind(std::size_t equal_bytes, std::uint64_t number) {
  std::string key(equal_bytes, 'e');
  for (int shift = 32; shift >= 0; shift -= 8) key += static_cast<char>(number >> shift & 0xFF);
  return key;
}

std::string digits(std::string_view prefix, std::uint64_t number) {
  const std::string text = std::to_string(number);
  return std::string(prefix) + std::string(12 - text.size(), '0') + text;
}

// Groups and single reads choose one leaf from key prefixes, and ask its fences only where the
// answer needs them. The choice must hardly ever be wrong, however alike the keys begin.
TEST(HostExecutor, HardlyEverChoosesAWrongLeaf) {
  using MakeKey = std::function<std::string(std::uint64_t)>;
  const std::pair<const char*, MakeKey> shapes[] = {
      {"random", [](std::uint64_t i) { return behind(0, base::mix64(i) >> 24); }},
      {"behind 8", [](std::uint64_t i) { return behind(8, base::mix64(i) >> 24); }},
      {"behind 64", [](std::uint64_t i) { return behind(64, base::mix64(i) >> 24); }},
      {"behind 400", [](std::uint64_t i) { return behind(400, base::mix64(i) >> 24); }},
      {"numbers", [](std::uint64_t i) { return digits("user:", i); }},
      {"addresses",
       [](std::uint64_t i) {
         const std::uint64_t hash = base::mix64(i);
         return "https://www.site-" + std::to_string(hash % 64) + ".example.org/" +
                digits(std::to_string(hash >> 40) + "/articles/", i);
       }},
      {"zeros",
       [](std::uint64_t i) {
         return "user:000" + std::string(i % 300, '\0') + std::to_string(i / 300);
       }},
  };
  constexpr std::uint64_t kKeys = 12'000;
  for (const auto& [name, make] : shapes) {
    SCOPED_TRACE(name);
    TreeFixture tree({.node_bytes = 8192});
    Crowd crowd(tree);
    std::vector<std::string> there;
    std::vector<std::string> missing;
    std::vector<std::string> later;
    for (std::uint64_t i = 0; i < 3 * kKeys; ++i) {
      (i % 3 == 0 ? there : i % 3 == 1 ? missing : later).push_back(make(i));
    }
    base::Random random(base::seed_from_environment(61));
    for (auto* keys : {&there, &missing, &later}) {
      for (std::size_t i = keys->size(); i > 1; --i)
        std::swap((*keys)[random.below(i)], (*keys)[i - 1]);
    }
    Found loaded;
    crowd.ask(Op::put, there, loaded);
    Found hits;
    Found misses;
    Found inserts;
    const std::uint64_t wrong_hits = crowd.ask(Op::get, there, hits);
    const std::uint64_t wrong_misses = crowd.ask(Op::get, missing, misses);
    const std::uint64_t wrong_alone = crowd.get_each(there, hits) + crowd.get_each(missing, misses);
    const std::uint64_t wrong_inserts = crowd.ask(Op::insert, later, inserts);
    EXPECT_EQ(hits.found, 2 * kKeys);
    EXPECT_EQ(misses.found, 0u);
    EXPECT_EQ(misses.answered, 2 * kKeys);
    EXPECT_EQ(inserts.answered, kKeys);
    EXPECT_EQ(hits.failed + misses.failed + inserts.failed, 0u);
    EXPECT_EQ(wrong_hits, 0u) << "nothing is written meanwhile";
    EXPECT_EQ(wrong_misses, 0u);
    EXPECT_EQ(wrong_alone, 0u);
    RecordProperty(std::string(name) + ", wrong of 12000 inserts", static_cast<int>(wrong_inserts));
    EXPECT_LT(wrong_inserts, kKeys / 100);
    EXPECT_EQ(audit(tree.map()), std::vector<std::string>{});
  }
}

}  // namespace
}  // namespace espalier::tree
