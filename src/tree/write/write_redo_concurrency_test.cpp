// SPDX-License-Identifier: Apache-2.0
// Threads that write the same keys, alone and by batches: for each key the records come in the
// order of the versions, and make the same map.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "tree/testing/redo_maps.hpp"
#include "tree/write/batch.hpp"

namespace espalier::tree {
namespace {

class WriteRedoConcurrency : public RedoMaps {
 protected:
  static constexpr std::uint32_t kThreads = 4;
  static constexpr int kRounds = 1500;

  // Few keys, in leaves that are split and merged all the time.
  void work(std::uint32_t thread, const Core& map, std::uint64_t seed) {
    ThreadContext context(store_, std::move(*store_.epochs.join()), thread);
    MapUser user(context, map);
    base::Random random(seed + thread);
    for (int round = 0; round < kRounds; ++round) {
      const std::string value = std::to_string(round) + std::string(random.below(60), 'v');
      const auto key = [&] { return TreeFixture::numbered(random.below(60)); };
      const std::uint64_t what = random.below(8);
      if (what == 0) {
        const std::string keys[] = {key(), key(), key()};
        const std::vector<BatchWrite> writes{{keys[0], value}, {keys[1], {}, true}, {keys[2], "b"}};
        ASSERT_TRUE(apply_batch(context, *map, writes, {}));
      } else {
        ASSERT_TRUE(user.write(what < 4 ? Op::erase : Op::put, key(), value).ok);
      }
    }
  }
};

TEST_F(WriteRedoConcurrency, RecordsOfAKeyComeInTheOrderOfItsVersions) {
  const Core map = create({.node_bytes = 512, .log_bytes = 64});
  const std::uint64_t seed = base::seed_from_environment(19);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { work(i, map, seed); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(versions_ascend(sink_));
  EXPECT_EQ(sink_.rooms(), 0u);
  std::vector<std::uint64_t> versions;
  for (const MapRedo& record : map_records(sink_)) versions.push_back(record.version);
  std::ranges::sort(versions);
  for (std::uint64_t i = 0; i < versions.size(); ++i) ASSERT_EQ(versions[i], i + 1);
  EXPECT_EQ(versions.size(), map->clock.taken());

  apply_some(0, sink_.count());
  MapUser from(context_, map);
  MapUser to(other_context_, other(*map));
  EXPECT_EQ(to.items(), from.items());
  EXPECT_GE(to.map().clock.released(), map->clock.released());
  EXPECT_EQ(audit_store(other_), std::vector<std::string>{});
}

}  // namespace
}  // namespace espalier::tree
