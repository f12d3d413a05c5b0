// SPDX-License-Identifier: Apache-2.0
// A store that runs out of memory, snapshots that are never dropped, trees that are emptied:
// nothing is lost, nothing leaks, and the map's memory is bounded.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/history.hpp"
#include "tests/support/key_set.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/sizes.hpp"
#include "tests/support/store.hpp"
#include "tests/support/workload.hpp"

namespace espalier::test {
namespace {

std::string key_of(std::uint64_t i) {
  std::string key = std::to_string(i * 2654435761 % 100'000'007);
  key.resize(16, '.');
  return key;
}

std::string first_of(const std::vector<std::string>& wrong) {
  return wrong.empty() ? std::string() : wrong.front();
}

class Faults : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kLimit = 32 * kMiB;

  // Puts until the store refuses, and returns what it took.
  static Contents fill(Map map, std::size_t value_bytes) {
    Contents contents;
    for (std::uint64_t i = 0; i < 10'000'000; ++i) {
      const std::string key = key_of(i);
      std::string value = std::to_string(i) + ".";
      value.resize(std::max(value.size(), value_bytes), 'v');
      const auto written = map.put(key, value);
      if (!written) {
        EXPECT_EQ(written.error().code, Code::out_of_memory) << message(written.error());
        return contents;
      }
      contents[key] = value;
    }
    ADD_FAILURE() << "memory never ran out";
    return contents;
  }

  static std::vector<std::string> shuffled_keys(const Contents& contents, std::uint64_t seed) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : contents) keys.push_back(key);
    Random random(seed);
    for (std::size_t i = keys.size(); i > 1; --i) std::swap(keys[random.below(i)], keys[i - 1]);
    return keys;
  }

  static void expect_holds(const Map& map, const Contents& contents) {
    auto expected = contents.begin();
    std::uint64_t different = 0;
    const auto count = map.scan("", "", [&](std::span<const Item> items) {
      for (const Item& item : items) {
        const bool same = expected != contents.end() && item.key == expected->first &&
                          item.value == expected->second;
        if (!same) ++different;
        if (expected != contents.end()) ++expected;
      }
      return true;
    });
    ASSERT_TRUE(count) << message(count.error());
    EXPECT_EQ(*count, contents.size());
    EXPECT_EQ(different, 0u);
    EXPECT_EQ(first_of(map.audit()), "");
  }
};

class FaultsMemory : public Faults, public ::testing::WithParamInterface<std::size_t> {};

// Every kind of write is refused and changes nothing; reads proceed.
TEST_P(FaultsMemory, WritesAreRefusedAndNothingIsLost) {
  Store store = open_store({.memory_bytes_max = kLimit});
  auto map = store.create_map("map", {.node_bytes = 1024});
  ASSERT_TRUE(map) << message(map.error());
  Contents contents = fill(*map, GetParam());
  ASSERT_GT(contents.size(), 100u);
  EXPECT_LE(*store.memory_bytes(), kLimit);
  expect_holds(*map, contents);
  // Sometimes a write still finds room; its answer must be true.
  std::uint64_t refused = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const std::string key = "new" + std::to_string(i);
    const std::string value(GetParam(), 'n');
    WriteBatch batch;
    batch.put(key, value).put(key + "+", value);
    const auto written = i % 2 == 0 ? map->put(key, value) : map->write(batch);
    if (written) {
      contents[key] = value;
      if (i % 2 == 1) contents[key + "+"] = value;
    } else {
      ASSERT_EQ(written.error().code, Code::out_of_memory);
      ++refused;
    }
    ASSERT_TRUE(map->get(contents.begin()->first)->has_value());
  }
  EXPECT_GT(refused, 0u);
  EXPECT_LE(*store.memory_bytes(), kLimit);
  expect_holds(*map, contents);
}

// Erasing works in a full store, and what it frees can be used again, several times over.
TEST_P(FaultsMemory, ErasingMakesRoom) {
  Store store = open_store({.memory_bytes_max = kLimit});
  auto map = store.create_map("map", {.node_bytes = 1024});
  ASSERT_TRUE(map);
  std::size_t first_fill = 0;
  for (int round = 0; round < (kSanitized ? 2 : 4); ++round) {
    Contents contents = fill(*map, GetParam());
    if (round == 0) first_fill = contents.size();
    EXPECT_GT(contents.size(), first_fill / 2) << "round " << round;
    for (const std::string& key : shuffled_keys(contents, static_cast<std::uint64_t>(round))) {
      const auto erased = map->erase(key);
      ASSERT_TRUE(erased) << message(erased.error());
      ASSERT_TRUE(erased->applied);
    }
    expect_holds(*map, {});
  }
  store.trim();
  EXPECT_EQ(map->stats()->value_bytes, 0u);
  EXPECT_EQ(first_of(map->audit()), "");
}

// So do batches that only erase.
TEST_P(FaultsMemory, ErasingInBatchesMakesRoom) {
  Store store = open_store({.memory_bytes_max = kLimit});
  auto map = store.create_map("map", {.node_bytes = 1024});
  ASSERT_TRUE(map);
  const Contents contents = fill(*map, GetParam());
  const std::vector<std::string> keys = shuffled_keys(contents, 7);
  for (std::size_t i = 0; i < keys.size(); i += 2) {
    WriteBatch batch;
    batch.erase(keys[i]);
    if (i + 1 < keys.size()) batch.erase(keys[i + 1]);
    const auto erased = map->write(batch);
    ASSERT_TRUE(erased) << message(erased.error()) << " at " << i;
  }
  expect_holds(*map, {});
}

INSTANTIATE_TEST_SUITE_P(ValueBytes, FaultsMemory, ::testing::Values(16, 300, 5000));

TEST_F(Faults, AFullMapLeavesRoomWhenItIsDropped) {
  Store store = open_store({.memory_bytes_max = kLimit});
  std::size_t first = 0;
  for (int round = 0; round < 4; ++round) {
    auto map = store.create_map("map");
    ASSERT_TRUE(map) << message(map.error());
    const std::size_t items = fill(*map, 100).size();
    if (round == 0) first = items;
    EXPECT_GT(items, first / 10 * 9);
    ASSERT_TRUE(store.drop_map("map"));
  }
}

// Records the outcomes of requests, whose tags are their indices.
class FaultOutcomes final : public Handler {
 public:
  explicit FaultOutcomes(std::size_t requests) : errors(requests), answered(requests) {}
  void done(const Completion& completion) override {
    ++answered[completion.tag];
    if (!completion.ok) errors[completion.tag] = completion.error.code;
    if (completion.op == Op::get && completion.found) ++found;
  }
  std::vector<std::optional<Code>> errors;
  std::vector<int> answered;
  std::uint64_t found = 0;
};

// A write that finds no memory releases its epoch and tries again; concurrent reads must keep
// theirs.
TEST_F(Faults, ReadsBesideRefusedWritesKeepTheirEpoch) {
  Store store = open_store({.memory_bytes_max = kLimit});
  auto map = store.create_map("map", {.node_bytes = 1024});
  ASSERT_TRUE(map);
  const Contents contents = fill(*map, 40);
  std::vector<std::string> keys;
  for (const auto& [key, value] : contents) keys.push_back(key);
  const std::string long_value(60, 'w');
  std::vector<Request> requests;
  std::uint64_t gets = 0;
  Random random(seed_from_environment(72));
  for (std::size_t i = 0; i < (kSanitized ? 20'000 : 100'000); ++i) {
    Request request;
    request.op = random.one_in(12) ? Op::put : Op::get;  // rarely two refused ones at the same time
    request.tag = i;
    request.key = keys[random.below(keys.size())];
    if (request.op == Op::put) request.value = long_value;
    gets += request.op == Op::get ? 1 : 0;
    requests.push_back(request);
  }
  FaultOutcomes outcomes(requests.size());
  auto pipeline = Pipeline::open(*map, 32);
  ASSERT_TRUE(pipeline);
  std::size_t next = 0;
  for (std::size_t left = 0; next < requests.size() || left != 0; left = pipeline->poll()) {
    for (; left < 32 && next < requests.size(); ++left, ++next) {
      pipeline->submit({&requests[next], 1}, outcomes);
    }
  }
  std::uint64_t refused = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    ASSERT_EQ(outcomes.answered[i], 1) << i;
    if (!outcomes.errors[i]) continue;
    ASSERT_EQ(*outcomes.errors[i], Code::out_of_memory);
    ++refused;
  }
  EXPECT_GT(refused, 0u);
  EXPECT_EQ(outcomes.found, gets);
  EXPECT_EQ(first_of(map->audit()), "");
}

// Threads that meet the limit together: all histories stay linearizable, refused writes did
// nothing.
TEST(FaultsConcurrency, WorkloadAtTheLimit) {
  Store store = open_store({.memory_bytes_max = 32 * kMiB});
  auto ballast = store.create_map("ballast", {.node_bytes = 512});
  auto map = store.create_map("map", {.node_bytes = 512, .log_bytes = 64});
  ASSERT_TRUE(ballast && map);
  const std::string large(100'000, 'b');
  for (std::uint64_t i = 0; ballast->put(key_of(i), large); ++i) {
  }
  // Other keys: a short value that replaces a long one would make room again.
  for (std::uint64_t i = 0; ballast->put(key_of(1'000'000 + i), std::string(20, 'b')); ++i) {
  }
  WorkloadOptions options;
  options.seed = seed_from_environment(71);
  SCOPED_TRACE(seed_text(options.seed));
  options.operations = scaled(3000);
  options.value_bytes_max = 4000;
  WorkloadReport report;
  EXPECT_EQ(run_and_check(*map, options, &report).value_or(""), "");
  EXPECT_GT(report.refused, 0u);
}

// --- Snapshots that are never dropped ------------------------------------------------------------

TEST_F(Faults, SnapshotsExpireAtTheirLimit) {
  Store store = open_store();
  auto map = store.create_map("map", {.snapshot_bytes_max = 4 * kMiB});
  ASSERT_TRUE(map);
  const auto round_of_puts = [&](std::uint64_t round) {
    for (std::uint64_t i = 0; i < 2000; ++i) {
      ASSERT_TRUE(map->put(key_of(i), std::to_string(round) + std::string(400, 's')));
    }
  };
  round_of_puts(0);
  std::vector<Snapshot> snapshots;
  std::uint64_t waiting_max = 0;
  for (std::uint64_t round = 1; round <= 40; ++round) {
    auto snapshot = map->snapshot();
    ASSERT_TRUE(snapshot);
    snapshots.push_back(std::move(*snapshot));
    ASSERT_NO_FATAL_FAILURE(round_of_puts(round));
    waiting_max = std::max(waiting_max, map->stats()->retired_bytes);
  }
  // The old ones are given up, with a clear error, and what they held is free.
  const auto expired = snapshots.front().get(key_of(1));
  ASSERT_FALSE(expired);
  EXPECT_EQ(expired.error().code, Code::snapshot_expired);
  EXPECT_EQ(snapshots.front().floor(key_of(1)).error().code, Code::snapshot_expired);
  EXPECT_EQ(snapshots.front().scan("", "", [](std::span<const Item>) { return true; }).error().code,
            Code::snapshot_expired);
  EXPECT_LT(waiting_max, 16 * kMiB);
  snapshots.clear();
  store.trim();
  EXPECT_EQ(first_of(map->audit()), "");
}

// Below the limit, snapshots keep their state.
TEST_F(Faults, SnapshotsBelowTheirLimitStay) {
  Store store = open_store();
  auto map = store.create_map("map", {.node_bytes = 512});
  ASSERT_TRUE(map);
  std::vector<Snapshot> snapshots;
  for (int round = 0; round < 50; ++round) {
    for (std::uint64_t i = 0; i < 40; ++i) {
      ASSERT_TRUE(map->put(key_of(i), std::to_string(round)));
    }
    auto snapshot = map->snapshot();
    ASSERT_TRUE(snapshot);
    snapshots.push_back(std::move(*snapshot));
  }
  for (std::uint64_t i = 0; i < 40; ++i) ASSERT_TRUE(map->erase(key_of(i)));
  for (std::size_t round = 0; round < snapshots.size(); ++round) {
    for (std::uint64_t i = 0; i < 40; ++i) {
      const auto found = snapshots[round].get(key_of(i));
      ASSERT_TRUE(found && *found);
      ASSERT_EQ((*found)->value, std::to_string(round));
    }
  }
  EXPECT_EQ(map->stats()->snapshots, 50u);
  snapshots.clear();
  EXPECT_EQ(map->stats()->snapshots, 0u);
  store.trim();
  EXPECT_EQ(first_of(map->audit()), "");
}

// --- Memory given back ---------------------------------------------------------------------------

enum class EraseOrder : std::uint8_t { ascending, descending, random };

class FaultsEmptied : public ::testing::TestWithParam<EraseOrder> {};

TEST_P(FaultsEmptied, GivesItsMemoryBack) {
  const std::uint64_t seed = seed_from_environment(72);
  SCOPED_TRACE(seed_text(seed));
  Store store = open_store();
  for (const std::uint32_t log_bytes : {0u, 512u}) {
    auto map = store.create_map(std::to_string(log_bytes), {.log_bytes = log_bytes});
    ASSERT_TRUE(map);
    const std::size_t count = kSanitized ? 20'000 : 100'000;
    std::vector<std::string> keys = make_keys(KeyPattern::random_bytes, count, 16, seed);
    for (const std::string& key : keys) ASSERT_TRUE(map->put(key, "0123456789abcdef"));
    const MapStats full = *map->stats();
    if (GetParam() != EraseOrder::random) std::sort(keys.begin(), keys.end());
    if (GetParam() == EraseOrder::descending) std::reverse(keys.begin(), keys.end());
    for (const std::string& key : keys) ASSERT_TRUE(map->erase(key));
    const MapStats empty = *map->stats();
    EXPECT_EQ(empty.items, 0u);
    // Some leaves may still carry the last erasures in their logs.
    EXPECT_LE(empty.leaves, full.leaves / 20 + 1);
    EXPECT_EQ(first_of(map->audit()), "");
  }
}

std::string order_name(const ::testing::TestParamInfo<EraseOrder>& info) {
  constexpr const char* kNames[] = {"Ascending", "Descending", "Random"};
  return kNames[static_cast<std::size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Orders, FaultsEmptied,
                         ::testing::Values(EraseOrder::ascending, EraseOrder::descending,
                                           EraseOrder::random),
                         order_name);

}  // namespace
}  // namespace espalier::test
