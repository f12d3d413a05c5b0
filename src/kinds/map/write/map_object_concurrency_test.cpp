// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "kinds/map/testing/map_objects.hpp"

namespace espalier::tree {
namespace {

class MapObjectsConcurrency : public MapObjects {
 protected:
  static constexpr std::uint32_t kThreads = 3;

  template <class Work>
  static void in_threads(const Work& work) {
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < kThreads; ++t) threads.emplace_back([&work, t] { work(t); });
    for (std::thread& thread : threads) thread.join();
  }
};

TEST_F(MapObjectsConcurrency, OfThoseWhoMakeOrDropANameOneSucceeds) {
  std::mutex mutex;
  std::set<std::uint32_t> ids;
  std::atomic<std::int64_t> made{0};
  std::atomic<std::int64_t> dropped{0};
  const std::uint64_t seed = base::seed_from_environment(91);
  in_threads([&](std::uint32_t thread) {
    base::Random random(seed + thread);
    for (int round = 0; round < 300; ++round) {
      const std::string name(1, static_cast<char>('a' + random.below(3)));
      if (const auto core = create(name, options_)) {
        ++made;
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(ids.insert((*core)->id).second);
      }
      if (const auto core = open(name)) {
        EXPECT_EQ((*core)->name, name);
        const auto same = find((*core)->id);
        EXPECT_TRUE(same == nullptr ? (*core)->dropped.load() : same == *core);
      }
      if (const auto core = drop(name)) {
        ++dropped;
        EXPECT_TRUE((*core)->dropped);
      }
    }
  });
  EXPECT_EQ(made - dropped, static_cast<std::int64_t>(names().size()));
  EXPECT_EQ(store_.objects.list<MapCore>().size(), names().size());
  EXPECT_EQ(audit_store(store_), std::vector<std::string>{});
}

// Each thread uses the map that has the name and, now and then, drops it while other threads use
// it; they see a consistent map of their own until they look up the name again.
TEST_F(MapObjectsConcurrency, AMapIsDroppedUnderThoseWhoUseIt) {
  const std::uint64_t in_use = buffers_in_use(store_);
  in_threads([&](std::uint32_t thread) {
    ThreadContext context(store_, std::move(*store_.epochs.join()), thread);
    for (int round = 0; round < 60; ++round) {
      auto core = create("name", options_);
      if (!core) core = open("name");
      if (!core) continue;
      MapUser user(context, std::move(*core));
      for (int i = 0; i < 100 && (i < 20 || !user.map().dropped); ++i) {
        const std::string key = TreeFixture::numbered(i) + std::to_string(thread);
        ASSERT_TRUE(user.put(key, key).ok);
        ASSERT_EQ(user.get(key), key);
      }
      if (round % 4 == 0) (void)drop("name");
    }
  });
  EXPECT_EQ(audit_store(store_), std::vector<std::string>{});
  (void)drop("name");
  EXPECT_EQ(buffers_in_use(store_), in_use);
}

}  // namespace
}  // namespace espalier::tree
