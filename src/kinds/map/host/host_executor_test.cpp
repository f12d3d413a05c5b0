// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/host/host_executor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/exposed_epoch.hpp"
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
  /// Requests all of these together; returns how many choices of a leaf were wrong.
  std::uint64_t ask(Op op, const std::vector<std::string>& keys, Found& found) {
    std::vector<Request> requests;
    for (const std::string& key : keys) requests.push_back(TreeFixture::request(op, key, "v"));
    const std::uint64_t before = executor_.wrong_choices();
    executor_.submit(requests, found);
    executor_.drain();
    return executor_.wrong_choices() - before;
  }
  /// Requests them sequentially, each by a path of its own.
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

/// Gets, floors and scans of many keys together, each with a hint.
class HintedReads : public ::testing::Test {
 protected:
  static constexpr int kKeys = 4'000;
  static constexpr bool kNeverWarm = false;

  HintedReads() { write_all(1); }
  void write_all(int rounds) {
    for (int i = 0; i < rounds * kKeys; ++i) {
      tree_.put(TreeFixture::numbered(i % kKeys), value_of(i % kKeys));
    }
  }
  static std::string value_of(int i) { return "v" + std::to_string(i); }
  MapCore& map() { return tree_.map(); }
  /// The nodes on the way to a key: the root first, the leaf last.
  std::vector<wire::Ref> way_to(std::string_view key) {
    Cursor cursor;
    cursor.read_version = kNewest;
    cursor.key.assign(key);
    std::vector<wire::Ref> way{map().root_ref()};
    for (;;) {
      const NodeView node = map().view(way.back());
      const Step step = next_step(map(), cursor, node, NodeHead::read(node.bytes()), way.back());
      if (step.kind != StepKind::child) return way;
      way.push_back(map().ref(step.lid));
    }
  }
  wire::Ref leaf_of(int i) { return way_to(TreeFixture::numbered(i)).back(); }

  /// Reads every tenth key, in groups, with the hint that is chosen for it, and expects what is
  /// there.
  template <class HintFor>
  void read_all(const HintFor& hint_for) {
    std::vector<std::string> keys;
    std::vector<Request> requests;
    for (int i = 0; i < kKeys; i += 10) keys.push_back(TreeFixture::numbered(i));
    constexpr Op kOps[] = {Op::get, Op::floor, Op::scan, Op::scan_floor};
    std::vector<OneAnswer> answers(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      requests.push_back(TreeFixture::request(kOps[i % 4], keys[i]));
      if (i % 4 > 1) requests.back().limit = 3;
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      executor_.submit(requests[i], answers[i], hint_for(static_cast<int>(i) * 10));
    }
    executor_.drain();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const int number = static_cast<int>(i) * 10;
      ASSERT_TRUE(answers[i].completion.ok);
      if (i % 4 < 2) {
        ASSERT_TRUE(answers[i].completion.found) << number;
        EXPECT_EQ(answers[i].value, value_of(number));
        continue;
      }
      ASSERT_EQ(answers[i].items_.size(), 3u) << number;
      EXPECT_EQ(answers[i].items_.front().first, keys[i]);
      EXPECT_EQ(answers[i].items_.back().second, value_of(number + 2));
    }
  }
  /// Hints that were admitted, that had moved, and that were refused, since this was asked last.
  std::array<std::uint64_t, 3> counted() {
    const std::array<std::uint64_t, 3> now{map().hints.admitted.sum(), map().hints.moved.sum(),
                                           map().hints.refused.sum()};
    const auto before = std::exchange(counted_, now);
    return {now[0] - before[0], now[1] - before[1], now[2] - before[2]};
  }

  TreeFixture tree_{{.node_bytes = 512}};
  ThreadContext context_{tree_.store(), std::move(*tree_.store().epochs.join()), 1};
  HostExecutor<HostAccess> executor_{context_, map(), 32,
                                     [this](std::uint32_t, base::ReadyQueue& queue) {
                                       return HostAccess(map().base, queue, true, &kNeverWarm);
                                     }};
  std::array<std::uint64_t, 3> counted_{};
};
using HintsCounted = std::array<std::uint64_t, 3>;

TEST_F(HintedReads, EnterAtNodesOfEachLevel) {
  const std::size_t levels = way_to(TreeFixture::numbered(0)).size();
  ASSERT_GE(levels, 3u);
  for (std::size_t level = 0; level < levels; ++level) {
    read_all([&](int i) { return way_to(TreeFixture::numbered(i))[level]; });
    EXPECT_EQ(counted(), (HintsCounted{400, 0, 0}));
  }
  // Levels side by side in one group, and requests without a hint among them.
  read_all([&](int i) {
    const std::size_t level = static_cast<std::size_t>(i) / 10 % (levels + 1);
    return level == levels ? wire::Ref{} : way_to(TreeFixture::numbered(i))[level];
  });
  EXPECT_EQ(counted()[1] + counted()[2], 0u);
}

TEST_F(HintedReads, HintsOfOtherNodesCostTimeAlone) {
  const wire::Ref first = leaf_of(0);
  read_all([&](int) { return first; });
  EXPECT_EQ(counted(), (HintsCounted{400, 0, 0}));
  base::Random random(base::seed_from_environment(7));
  read_all([&](int) { return leaf_of(static_cast<int>(random.below(kKeys))); });
  // Those that name no node: of another generation, beside a node's begin, outside, anything.
  read_all([&](int i) {
    const wire::Ref leaf = leaf_of(i);
    return wire::Ref::make(leaf.offset(), leaf.generation() + 1);
  });
  EXPECT_EQ(counted(), (HintsCounted{400, 0, 400}));
  for (int round = 0; round < 20; ++round) {
    read_all([&](int) { return wire::Ref{random()}; });
    read_all([&](int) { return wire::Ref::make(random.below(std::uint64_t{64} << 20), 1); });
  }
  EXPECT_LT(counted()[0], 100u) << "few of so many name a node by chance";
}

// Leaves move at each merge of their logs: their old references lead to where they are now, as long
// as a reader keeps the old ones from being used for something else.
TEST_F(HintedReads, WhatHasMovedIsEnteredWhereItIs) {
  write_all(3);  // those that were full are split
  std::vector<wire::Ref> leaves(kKeys);
  for (int i = 0; i < kKeys; ++i) leaves[static_cast<std::size_t>(i)] = leaf_of(i);
  {
    const base::ExposedEpoch exposed(context_.slot);
    write_all(5);
  }
  counted();
  read_all([&](int i) { return leaves[static_cast<std::size_t>(i)]; });
  const HintsCounted now = counted();
  EXPECT_GE(now[1], 300u) << "hardly any had moved";
  EXPECT_EQ(now[0] + now[1] + now[2], 400u);
  // When they are free, and used anew, they lead nowhere.
  for (int i = 0; i < 20; ++i) tree_.store().reclaimer.collect(tree_.context().cache);
  write_all(1);
  for (int i = 0; i < 20; ++i) tree_.store().reclaimer.collect(tree_.context().cache);
  counted();
  read_all([&](int i) { return leaves[static_cast<std::size_t>(i)]; });
  EXPECT_GE(counted()[2], 200u);
}

}  // namespace
}  // namespace espalier::tree
