// SPDX-License-Identifier: Apache-2.0
// What include/espalier/map.hpp promises of single calls, beyond what the model tests compare.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kinds/map/client/embedded_map.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/store.hpp"

namespace espalier::test {
namespace {

class MapCalls : public ::testing::TestWithParam<bool> {
 protected:
  MapCalls() { map_.put("present", "value").value(); }

  std::optional<std::uint32_t> failed_condition(const WriteBatch& batch) {
    const auto written = map_.write(batch);
    if (written) return std::nullopt;
    EXPECT_EQ(written.error().code, Code::condition_failed);
    return written.error().detail;
  }
  std::vector<std::string> keys() {
    std::vector<std::string> keys;
    EXPECT_TRUE(map_.scan("", "", [&](std::span<const Item> items) {
      for (const Item& item : items) keys.emplace_back(item.key);
      return true;
    }));
    return keys;
  }

  Store store_ = open_store();
  Map map_ = *store_.create_map("map", {.node_bytes = 512, .versions = GetParam()});
};

INSTANTIATE_TEST_SUITE_P(Versions, MapCalls, ::testing::Bool(), [](const auto& versions) {
  return std::string(versions.param ? "On" : "Off");
});

TEST_P(MapCalls, ABatchNamesTheFirstConditionThatFailsInTheOrderOfAdding) {
  WriteBatch batch;
  batch.only_if_present("present").put("a", "1").only_if_value("present", "other");
  batch.only_if_absent("present").put("b", "1").only_if_present("absent");
  EXPECT_EQ(failed_condition(batch), 1u);
  // Not in the order of keys.
  batch.clear();
  batch.put("a", "1").only_if_present("z").only_if_present("y").only_if_present("x");
  EXPECT_EQ(failed_condition(batch), 0u);
  batch.clear();
  batch.put("a", "1").only_if_present("present").only_if_absent("x").only_if_present("b");
  EXPECT_EQ(failed_condition(batch), 2u);
  EXPECT_EQ(keys(), std::vector<std::string>{"present"});
}

TEST_P(MapCalls, ABatchTellsWhetherAnyKeyThatItWritesExisted) {
  const auto existed = [&](const WriteBatch& batch) {
    const auto written = map_.write(batch);
    EXPECT_TRUE(written && written->applied);
    return written->existed;
  };
  WriteBatch batch;
  EXPECT_FALSE(existed(batch.put("a", "1").put("b", "1").only_if_present("present")));
  EXPECT_TRUE(existed(batch));
  batch.clear();
  EXPECT_TRUE(existed(batch.put("c", "1").erase("b").put("d", "1")));
  batch.clear();
  EXPECT_FALSE(existed(batch.put("b", "2").erase("b").erase("nowhere")));
  EXPECT_EQ(keys(), (std::vector<std::string>{"a", "c", "d", "present"}));
}

TEST_P(MapCalls, ABatchWithoutWritesIsRefused) {
  WriteBatch batch;
  batch.only_if_present("present");
  const auto written = map_.write(batch);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::invalid_argument);
}

TEST_P(MapCalls, AConditionOnAVersion) {
  const auto found = map_.get("present");
  ASSERT_TRUE(found && *found);
  WriteBatch batch;
  batch.put("present", "new").only_if_version("present", (*found)->version);
  EXPECT_EQ(failed_condition(batch), std::nullopt);
  // With versions off all are 0.
  EXPECT_EQ(failed_condition(batch).has_value(), GetParam());
  batch.clear();
  EXPECT_EQ(failed_condition(batch.put("a", "1").only_if_version("absent", 0)), 0u);
}

TEST_P(MapCalls, FromFloorIsRefusedDescending) {
  const auto sink = [](std::span<const Item>) {
    ADD_FAILURE() << "delivered something";
    return true;
  };
  const ScanOptions both{.reverse = true, .from_floor = true};
  const auto scanned = map_.scan("", "", sink, both);
  ASSERT_FALSE(scanned);
  EXPECT_EQ(scanned.error().code, Code::invalid_argument);
  if (!GetParam()) return;
  const auto snapshot = map_.snapshot();
  ASSERT_TRUE(snapshot);
  const auto then = snapshot->scan("", "", sink, both);
  ASSERT_FALSE(then);
  EXPECT_EQ(then.error().code, Code::invalid_argument);
}

// An unowned buffer, and a fault in another map, appear in the audit of each map.
TEST_P(MapCalls, TheAuditLooksAtTheWholeStore) {
  Map other = *store_.create_map("other", {.node_bytes = 1024});
  ASSERT_TRUE(other.put("key", "value"));
  EXPECT_TRUE(map_.audit().empty());
  tree::MapCore& core = client::EmbeddedMap::of(other).core();
  const std::uint64_t lost = *core.store.pool.allocate(core.node_class);
  EXPECT_EQ(map_.audit().size(), 1u);
  EXPECT_EQ(map_.audit(), other.audit());
  core.store.pool.release(lost, core.node_class);
  core.items.add(0, 1);
  ASSERT_EQ(map_.audit().size(), 1u);
  EXPECT_NE(map_.audit().front().find("map 2: the counter of items"), std::string::npos);
  core.items.add(0, -1);
  EXPECT_TRUE(map_.audit().empty());
}

class MapCallsConcurrency : public MapCalls {};

INSTANTIATE_TEST_SUITE_P(Versions, MapCallsConcurrency, ::testing::Bool(),
                         [](const auto& versions) {
                           return std::string(versions.param ? "On" : "Off");
                         });

// Each batch counts up two keys in leaves of their own. A writer that saw one of them counted and
// the other not would find the first condition to hold and the second to fail.
TEST_P(MapCallsConcurrency, WritersSeeABatchWholeOrNotAtAll) {
  constexpr std::uint64_t kThreads = 3;
  const std::uint64_t rounds = scaled(3000);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(map_.put("m" + std::to_string(i), "between"));
  ASSERT_GT(map_.stats()->leaves, 3u);
  ASSERT_TRUE(map_.put("a", "0") && map_.put("z", "0"));
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t done = 0; done < rounds;) {
        const std::string now = (*map_.get("a"))->value;
        const std::string next = std::to_string(std::stoull(now) + 1);
        WriteBatch batch;
        batch.put("a", next).put("z", next).only_if_value("a", now).only_if_value("z", now);
        const auto written = map_.write(batch);
        if (written) {
          ++done;
        } else {
          ASSERT_EQ(written.error().code, Code::condition_failed);
          ASSERT_EQ(written.error().detail, 0u);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ((*map_.get("z"))->value, std::to_string(kThreads * rounds));
  EXPECT_TRUE(map_.audit().empty());
}

// A thread that keeps engines for several maps, while another one makes and drops maps.
TEST(MapCallsConcurrency, MapsComeAndGoBesideCallsOnOthers) {
  Store store = open_store();
  Map maps[2] = {*store.create_map("one"), *store.create_map("two")};
  for (Map& map : maps) map.put("key", "value").value();
  std::jthread reader([&](const std::stop_token& stop) {
    std::string value;
    for (std::size_t i = 0; !stop.stop_requested(); ++i)
      EXPECT_EQ(maps[i % 2].get("key", value), true);
  });
  for (int round = 0; round < 100; ++round) {
    Map map = *store.create_map("passing");
    map.put("key", "value").value();
    EXPECT_TRUE(map.get("key").value().has_value());
    ASSERT_TRUE(store.drop_map("passing"));
  }
}

// Without versions a scan is not of one moment, but it ascends and stays inside its range, while
// leaves come and go.
TEST(MapCallsConcurrency, ScansWithoutVersionsAscendWithinTheirRange) {
  Store store = open_store();
  Map map = *store.create_map("map", {.node_bytes = 512, .log_bytes = 64, .versions = false});
  constexpr int kKeys = 1000;
  const auto key_of = [](int i) { return std::to_string(10'000 + i); };
  for (int i = 0; i < kKeys; ++i) map.put(key_of(i), "value").value();
  std::jthread writer([&](const std::stop_token& stop) {
    Random random(seed_from_environment(81));
    while (!stop.stop_requested()) {  // leaves empty and fill again
      const int first = static_cast<int>(random.below(kKeys));
      for (int i = first; i < std::min(first + 100, kKeys); ++i) (void)map.erase(key_of(i));
      for (int i = first; i < std::min(first + 100, kKeys); ++i) (void)map.put(key_of(i), "value");
    }
  });
  Random random(seed_from_environment(82));
  for (int round = 0; round < (kSanitized ? 300 : 3000); ++round) {
    const std::string low = key_of(static_cast<int>(random.below(kKeys)));
    std::string last;
    const auto ascends = [&](std::span<const Item> items) {
      for (const Item& item : items) {
        EXPECT_GE(item.key, low);
        EXPECT_GT(item.key, last);
        last = item.key;
      }
      return true;
    };
    // In a group, and in a lane.
    ASSERT_TRUE(map.scan(low, "", ascends, {.limit = round % 2 == 0 ? 200u : 0u}));
    ASSERT_FALSE(::testing::Test::HasFailure()) << "round " << round;
  }
}

}  // namespace
}  // namespace espalier::test
