// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/host/group_writes.hpp"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "kinds/map/testing/group_writes.hpp"

namespace espalier::tree {
namespace {

using GroupItems = std::map<std::string, std::string>;

TEST(GroupWrites, AWriteThatChangesNothingTakesNoVersion) {
  TreeFixture tree({.node_bytes = 1024});
  tree.fill(200);
  GroupUser user(tree.store(), tree.map(), 1);
  const std::uint64_t before = tree.map().clock.taken();
  const auto answers = user.run({TreeFixture::request(Op::insert, "key00010", "v"),
                                 TreeFixture::request(Op::update, "none", "v"),
                                 TreeFixture::request(Op::erase, "nothing")});
  EXPECT_TRUE(answers[0].completion.found);
  for (const auto& answer : answers) {
    EXPECT_TRUE(answer.completion.ok && !answer.completion.applied);
  }
  EXPECT_EQ(tree.map().clock.taken(), before);
}

// Random writes of few keys, some of them long, as one writer after the other would do them: the
// requests of one key keep their order here.
class GroupModel {
 public:
  explicit GroupModel(const MapOptions& options) : tree_(options) {}

  void step(base::Random& random) {
    std::vector<std::string> keys;
    std::vector<std::string> values;
    std::vector<Op> ops;
    const std::uint64_t count = 1 + random.below(50);
    const std::uint64_t most = random.below(4) == 0 ? 6000 : 80;
    for (std::uint64_t i = 0; i < count; ++i) {
      keys.push_back(TreeFixture::numbered(random.below(300)));
      values.emplace_back(random.below(most), static_cast<char>('a' + i % 26));
      constexpr Op kOps[] = {Op::put, Op::put, Op::insert, Op::update, Op::erase};
      ops.push_back(kOps[random.below(std::size(kOps))]);
    }
    std::vector<Request> requests;
    for (std::uint64_t i = 0; i < count; ++i) {
      requests.push_back(TreeFixture::request(ops[i], keys[i], values[i]));
    }
    const auto answers = user_.run(requests);
    for (std::uint64_t i = 0; i < count; ++i) expect(requests[i], answers[i].completion);
  }

  // All keys, in groups, of which some have values out of line.
  void expect_all() {
    std::vector<std::string> keys;
    for (int i = 0; i < 300; ++i) keys.push_back(TreeFixture::numbered(i));
    std::vector<Request> gets;
    for (const std::string& key : keys) gets.push_back(TreeFixture::request(Op::get, key));
    const auto answers = user_.run(gets);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto at = model_.find(keys[i]);
      ASSERT_EQ(answers[i].completion.found, at != model_.end()) << keys[i];
      if (at == model_.end()) continue;
      ASSERT_EQ(answers[i].value, at->second) << keys[i];
    }
    ASSERT_EQ(tree_.map().items.sum(), model_.size());
    ASSERT_EQ(audit(tree_.map()), std::vector<std::string>{});
  }

 private:
  void expect(const Request& request, const Completion& done) {
    const std::string key(request.key);
    const bool existed = model_.contains(key);
    ASSERT_TRUE(done.ok);
    ASSERT_EQ(done.found, existed) << key;
    ASSERT_EQ(done.applied, takes_effect(request.op, existed)) << key;
    if (!done.applied) return;
    ASSERT_GT(done.version, versions_[key]) << key;
    versions_[key] = done.version;
    if (request.op == Op::erase) {
      model_.erase(key);
    } else {
      model_[key] = request.value;
    }
  }

  TreeFixture tree_;
  GroupUser user_{tree_.store(), tree_.map(), 1};
  GroupItems model_;
  std::map<std::string, std::uint64_t> versions_;
};

TEST(GroupWrites, DoWhatOneWriterDoes) {
  const std::uint64_t seed = base::seed_from_environment(44);
  for (const MapOptions& options : {MapOptions{.node_bytes = 512, .log_bytes = 64},
                                    MapOptions{.node_bytes = 1024}, MapOptions{}}) {
    base::Random random(seed);
    GroupModel model(options);
    for (int round = 0; round < 40; ++round) {
      for (int i = 0; i < 5; ++i) model.step(random);
      model.expect_all();
      if (testing::Test::HasFailure()) return;
    }
  }
}

// Keys that ascend, alone and in groups, behind the same first bytes; and then ones before them, in
// the leaf that is asked first, which is split, merged away and given back meanwhile.
TEST(GroupWrites, AscendingKeysFindTheirLeaf) {
  for (const std::string prefix : {"", "tenants/0001/orders/"}) {
    TreeFixture tree({.node_bytes = 1024});
    GroupUser user(tree.store(), tree.map(), 1);
    GroupItems model;
    for (std::uint64_t round = 0; round < 30; ++round) {
      std::vector<std::string> keys;
      for (std::uint64_t i = 0; i < 100; ++i) {
        keys.push_back(TreeFixture::numbered(100 * round + i, prefix));
      }
      std::vector<Request> puts;
      for (const std::string& key : keys) {
        puts.push_back(TreeFixture::request(Op::insert, key, key));
        model[key] = key;
      }
      if (round % 3 == 0) {
        for (const Request& put : puts) ASSERT_TRUE(user.run_alone(put).completion.applied);
      } else {
        for (const auto& answer : user.run(puts)) ASSERT_TRUE(answer.completion.applied);
      }
      if (round % 4 != 3) continue;
      // The newest leaves go, the one that was written last among them, and some keys come again.
      for (const std::string& key : keys) {
        ASSERT_TRUE(user.run_alone(TreeFixture::request(Op::erase, key)).completion.applied);
        model.erase(key);
      }
      for (std::size_t i = keys.size(); i-- > 90;) {
        ASSERT_FALSE(user.run_alone(TreeFixture::request(Op::put, keys[i], "v")).completion.found);
        model[keys[i]] = "v";
      }
    }
    OneAnswer all;
    tree.run(TreeFixture::request(Op::scan, ""), all);
    const std::vector<std::pair<std::string, std::string>> expected(model.begin(), model.end());
    EXPECT_EQ(all.items_, expected);
    EXPECT_EQ(audit(tree.map()), std::vector<std::string>{});
  }
}

}  // namespace
}  // namespace espalier::tree
