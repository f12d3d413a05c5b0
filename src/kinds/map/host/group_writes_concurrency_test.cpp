// SPDX-License-Identifier: Apache-2.0
// Threads whose groups write the same few keys: the versions of a key are those of one write each,
// and its value is that of the newest.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "kinds/map/testing/group_writes.hpp"

namespace espalier::tree {
namespace {

using VersionsByKey =
    std::map<std::string, std::map<std::uint64_t, std::string>>;  // by key and version

void write_in_groups(GroupUser& user, std::uint32_t thread, std::uint64_t seed,
                     VersionsByKey& written) {
  base::Random random(seed + thread);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> keys;
    std::vector<std::string> values;
    for (std::uint32_t i = 0; i < GroupUser::kInFlight; ++i) {
      keys.push_back(TreeFixture::numbered(random.below(60)));
      values.push_back(std::to_string(thread) + "/" + std::to_string(round) + "/" +
                       std::to_string(i) + std::string(random.below(30), '.'));
    }
    std::vector<Request> puts;
    for (std::uint32_t i = 0; i < GroupUser::kInFlight; ++i) {
      puts.push_back(TreeFixture::request(Op::put, keys[i], values[i]));
    }
    const auto& answers = user.run(puts);
    for (std::uint32_t i = 0; i < GroupUser::kInFlight; ++i) {
      ASSERT_TRUE(answers[i].completion.applied);
      const bool first = written[keys[i]].emplace(answers[i].completion.version, values[i]).second;
      ASSERT_TRUE(first) << keys[i];
    }
  }
}

TEST(GroupWritesConcurrency, EachVersionOfAKeyIsThatOfOneWrite) {
  constexpr std::uint32_t kThreads = 3;
  const std::uint64_t seed = base::seed_from_environment(45);
  TreeFixture tree({.node_bytes = 1024});
  tree.fill(60);
  std::vector<std::unique_ptr<GroupUser>> users;
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    users.push_back(std::make_unique<GroupUser>(tree.store(), tree.map(), i + 1));
  }
  std::vector<VersionsByKey> written(kThreads);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { write_in_groups(*users[i], i, seed, written[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  VersionsByKey all;
  for (const VersionsByKey& one : written) {
    for (const auto& [key, versions] : one) {
      for (const auto& [version, value] : versions) {
        ASSERT_TRUE(all[key].emplace(version, value).second) << key << " at " << version;
      }
    }
  }
  for (const auto& [key, versions] : all) {
    const auto found = users[0]->run({TreeFixture::request(Op::get, key)});
    EXPECT_EQ(found.front().value, versions.rbegin()->second) << key;
  }
  EXPECT_EQ(audit(tree.map()), std::vector<std::string>{});
}

}  // namespace
}  // namespace espalier::tree
