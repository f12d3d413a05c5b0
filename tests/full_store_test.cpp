// SPDX-License-Identifier: Apache-2.0
// Memory freed by items of one size serves every other size; a full store still erases.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "tests/support/node_fixture.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/sizes.hpp"
#include "tests/support/store.hpp"

namespace espalier::test {
namespace {

constexpr std::size_t kLargeBytes = 100'000;

class FullStore : public ::testing::Test {
 protected:
  FullStore() : seed_(seed_from_environment(160)), random_(seed_) {}

  std::string random_key() {
    std::string key(16, 0);
    for (char& letter : key) letter = static_cast<char>(random_.below(256));
    return key;
  }

  /// Puts values of these sizes under random keys until the store refuses; returns the keys.
  template <class Bytes>
  std::vector<std::string> fill(Map& map, const Bytes& bytes, std::uint64_t* total = nullptr) {
    std::vector<std::string> keys;
    for (;;) {
      keys.push_back(random_key());
      const std::size_t length = bytes();
      const auto written = map.put(keys.back(), std::string(length, 'v'));
      if (!written) {
        EXPECT_EQ(written.error().code, Code::out_of_memory) << message(written.error());
        keys.pop_back();
        return keys;
      }
      if (total != nullptr) *total += length;
    }
  }

  void erase_all(Map& map, std::vector<std::string> keys) {
    for (std::size_t i = keys.size(); i > 1; --i) std::swap(keys[random_.below(i)], keys[i - 1]);
    for (const std::string& key : keys) {
      const auto erased = map.erase(key);
      ASSERT_TRUE(erased) << message(erased.error());
      ASSERT_TRUE(erased->applied);
    }
  }

  static void expect_sound(const Map& map) {
    const std::vector<std::string> wrong = map.audit();
    EXPECT_TRUE(wrong.empty()) << wrong.front();
  }

  const std::uint64_t seed_;
  Random random_;
};

TEST_F(FullStore, MemoryOfSmallItemsServesLargeValuesAndBack) {
  SCOPED_TRACE(seed_text(seed_));
  Store store = open_store({.memory_bytes_max = 32 * kMiB});
  auto map = store.create_map("map");
  ASSERT_TRUE(map);
  const auto small = [] { return std::size_t{16}; };
  const auto large = [] { return kLargeBytes; };
  const std::vector<std::string> first = fill(*map, small);
  for (int round = 0; round < 2; ++round) {
    ASSERT_NO_FATAL_FAILURE(erase_all(*map, round == 0 ? first : fill(*map, small)));
    expect_sound(*map);
    const std::vector<std::string> values = fill(*map, large);
    EXPECT_GE(values.size() * kLargeBytes, 20 * kMiB) << "round " << round;
    ASSERT_NO_FATAL_FAILURE(erase_all(*map, values));
    const std::vector<std::string> again = fill(*map, small);
    EXPECT_GE(again.size(), first.size() * 9 / 10) << "round " << round;
    ASSERT_NO_FATAL_FAILURE(erase_all(*map, again));
  }
  expect_sound(*map);
}

TEST_F(FullStore, ValuesOfAllSizesFillHalfTheLimit) {
  SCOPED_TRACE(seed_text(seed_));
  Store store = open_store({.memory_bytes_max = 32 * kMiB});
  auto map = store.create_map("map");
  ASSERT_TRUE(map);
  for (int round = 0; round < 3; ++round) {
    std::uint64_t bytes = 0;
    const auto keys = fill(*map, [&] { return 500 + random_.below(65536 - 500 + 1); }, &bytes);
    EXPECT_GE(bytes, 16 * kMiB) << "round " << round;
    ASSERT_NO_FATAL_FAILURE(erase_all(*map, keys));
  }
  expect_sound(*map);
}

// --- Snapshots -----------------------------------------------------------------------------------

std::string eight_digit_key(std::uint64_t i) {
  std::string digits = std::to_string(i);
  return "key" + std::string(8 - digits.size(), '0') + digits;
}

/// Fills six tenths of the store with values of 100 bytes; returns how many. Leaves that are filled
/// in order are full and split when their items are written again, so that nine tenths are taken
/// once all were.
std::uint64_t fill_most(const Store& store, Map& map, std::uint64_t limit) {
  std::uint64_t items = 0;
  const std::string value(100, '0');
  if (store.memory_bytes()) {
    while (store.memory_bytes().value_or(limit) < limit / 10 * 6) {
      for (int i = 0; i < 64; ++i) EXPECT_TRUE(map.put(eight_digit_key(items++), value));
    }
    return items;
  }
  // A node does not report its limit: fill it until it refuses, then erase four tenths.
  while (map.put(eight_digit_key(items), value)) ++items;
  for (std::uint64_t i = items / 10 * 6; i < items; ++i) EXPECT_TRUE(map.erase(eight_digit_key(i)));
  return items / 10 * 6;
}

/// Whether a snapshot has either its state, or expired.
bool tells_what_was(const Snapshot& snapshot, std::uint64_t items, bool& expired) {
  std::uint64_t seen = 0;
  bool good = true;
  const auto scanned = snapshot.scan("", "", [&](std::span<const Item> some) {
    for (const Item& item : some) {
      good = good && item.key == eight_digit_key(seen) && item.value == std::string(100, '0');
      ++seen;
    }
    return true;
  });
  expired = !scanned && scanned.error().code == Code::snapshot_expired;
  return good && (expired || (scanned && seen == items));
}

class FullStoreSnapshots : public FullStore {};

// A snapshot of a store with little free memory: its owner may have stopped for ever.
TEST_F(FullStoreSnapshots, ASnapshotYieldsToWritesAndErases) {
  constexpr std::uint64_t kLimit = 32 * kMiB;
  Store store = open_store({.memory_bytes_max = kLimit});
  auto map = store.create_map("map");
  ASSERT_TRUE(map);
  const std::uint64_t items = fill_most(store, *map, kLimit);
  for (int round = 1; round <= 3; ++round) {
    const auto snapshot = map->snapshot();
    ASSERT_TRUE(snapshot);
    bool expired = false;
    if (round == 1) {
      EXPECT_TRUE(tells_what_was(*snapshot, items, expired));
      EXPECT_FALSE(expired);
    }
    for (std::uint64_t i = 0; i < items; ++i) {
      const auto put =
          map->put(eight_digit_key(i), std::string(100, static_cast<char>('0' + round)));
      ASSERT_TRUE(put) << message(put.error()) << " round " << round << " item " << i;
    }
    const auto read = snapshot->get(eight_digit_key(0));
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, Code::snapshot_expired);
    if (round == 1) {
      EXPECT_TRUE(tells_what_was(*snapshot, items, expired) && expired);
    }
  }
  const auto snapshot = map->snapshot();
  ASSERT_TRUE(snapshot);
  for (std::uint64_t i = 0; i < items; ++i) {
    const auto erased = map->erase(eight_digit_key(i));
    ASSERT_TRUE(erased && erased->applied) << i;
  }
  expect_sound(*map);
}

// What is written in one piece, with values of their own, and maps that are made.
TEST_F(FullStoreSnapshots, ASnapshotYieldsToBatchesAndNewMaps) {
  constexpr std::uint64_t kLimit = 32 * kMiB;
  Store store = open_store({.memory_bytes_max = kLimit});
  auto map = store.create_map("map");
  ASSERT_TRUE(map);
  const std::uint64_t items = fill_most(store, *map, kLimit) / 2;
  for (std::uint64_t i = 0; i < items; ++i) ASSERT_TRUE(map->erase(eight_digit_key(i)));
  const std::string large(200'000, 'l');
  for (int round = 0; round < 10; ++round) {
    const auto snapshot = map->snapshot();
    ASSERT_TRUE(snapshot);
    for (int i = 0; i < 5; ++i) {
      WriteBatch batch;
      for (int j = 0; j < 5; ++j) batch.put("large" + std::to_string(5 * i + j), large);
      const auto written = map->write(batch);
      ASSERT_TRUE(written) << message(written.error()) << " round " << round << " batch " << i;
    }
  }
  const auto snapshot = map->snapshot();
  ASSERT_TRUE(snapshot);
  // All that may be held is; then memory is filled up.
  for (int i = 0; i < 25; ++i) ASSERT_TRUE(map->put("large" + std::to_string(i), large));
  auto ballast = store.create_map("ballast");
  ASSERT_TRUE(ballast);
  for (int i = 0; ballast->put("ballast" + std::to_string(i), large); ++i) {
  }
  EXPECT_EQ(snapshot->get("large1").error().code, Code::snapshot_expired);
  expect_sound(*map);
}

// Requests in flight keep what was replaced from being freed; an erase waits for that.
TEST_F(FullStore, ErasesInFlightTogetherSucceed) {
  SCOPED_TRACE(seed_text(seed_));
  Store store = open_store({.memory_bytes_max = 16 * kMiB});
  auto map = store.create_map("map");
  ASSERT_TRUE(map);
  for (int round = 0; round < (kSanitized ? 1 : 4); ++round) {
    std::vector<std::string> keys = fill(*map, [] { return std::size_t{16}; });
    std::vector<Request> requests(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      requests[i].op = Op::erase;
      requests[i].tag = i;
      requests[i].key = keys[i];
    }
    struct Counts final : Handler {
      void done(const Completion& completion) override {
        ++(completion.ok && completion.applied ? erased : failed);
      }
      std::uint64_t erased = 0;
      std::uint64_t failed = 0;
    } counts;
    auto pipeline = Pipeline::open(*map, 32);
    ASSERT_TRUE(pipeline);
    pipeline->run(requests, counts);
    EXPECT_EQ(counts.erased, keys.size()) << "round " << round;
    EXPECT_EQ(counts.failed, 0u) << "round " << round;
  }
  expect_sound(*map);
}

/// Counts what became of requests; answers of puts also by request.
struct FullStoreOutcomes final : Handler {
  void done(const Completion& completion) override {
    if (completion.ok && completion.applied) {
      ++applied;
      if (!puts.empty()) puts[completion.tag] = true;
    } else {
      ++failed;
    }
  }
  std::vector<bool> puts;
  std::uint64_t applied = 0;
  std::uint64_t failed = 0;
};

/// Puts random keys by a pipeline of 32 until the store refused some three times, while others do
/// the same, then erases them by such a pipeline. Returns how many erases failed.
std::uint64_t fill_and_erase(Map map, std::uint64_t seed) {
  constexpr std::size_t kAtATime = 4096;
  Random random(seed);
  std::vector<std::string> keys;
  auto pipeline = Pipeline::open(map, 32);
  EXPECT_TRUE(pipeline);
  for (int refused = 0; refused < 3;) {
    std::vector<std::string> some(kAtATime, std::string(16, 0));
    std::vector<Request> requests(kAtATime);
    for (std::size_t i = 0; i < kAtATime; ++i) {
      for (char& letter : some[i]) letter = static_cast<char>(random.below(256));
      requests[i].op = Op::put;
      requests[i].tag = i;
      requests[i].key = some[i];
      requests[i].value = "sixteen letters.";
    }
    FullStoreOutcomes outcomes;
    outcomes.puts.resize(kAtATime);
    pipeline->run(requests, outcomes);
    refused += outcomes.failed != 0 ? 1 : 0;
    for (std::size_t i = 0; i < kAtATime; ++i) {
      if (outcomes.puts[i]) keys.push_back(some[i]);
    }
  }
  std::vector<Request> requests(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    requests[i].op = Op::erase;
    requests[i].tag = i;
    requests[i].key = keys[i];
  }
  FullStoreOutcomes outcomes;
  pipeline->run(requests, outcomes);
  EXPECT_EQ(outcomes.applied + outcomes.failed, keys.size());
  return outcomes.failed;
}

/// A limit that is reached soon.
constexpr std::uint64_t kSmallStoreBytes = (kSanitized ? 8 : 16) * kMiB;

/// Two concurrent threads, for some rounds, each with a store from `connect`.
template <class Connect>
void fill_and_erase_together(const Connect& connect, std::uint64_t rounds, std::uint64_t seed) {
  for (std::uint64_t round = 0; round < rounds; ++round) {
    std::vector<std::thread> threads;
    std::array<std::uint64_t, 2> failed{};
    for (std::size_t i = 0; i < failed.size(); ++i) {
      threads.emplace_back([&, i] {
        const auto map = connect().open_map("default");
        ASSERT_TRUE(map);
        failed[i] = fill_and_erase(*map, seed + 2 * round + i);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failed[0], 0u) << "round " << round;
    EXPECT_EQ(failed[1], 0u) << "round " << round;
  }
}

// What one thread frees, another one may still read, or wants for its puts.
TEST(FullStoreConcurrency, ErasesOfSeveralThreadsSucceed) {
  const std::uint64_t seed = seed_from_environment(161);
  SCOPED_TRACE(seed_text(seed));
  Store store = open_store({.memory_bytes_max = kSmallStoreBytes});
  const auto map = store.create_map("default");
  ASSERT_TRUE(map);
  fill_and_erase_together([&]() -> Store& { return store; }, kSanitized ? 1 : 3, seed);
  const std::vector<std::string> wrong = map->audit();
  EXPECT_TRUE(wrong.empty()) << wrong.front();
}

/// All keys of a map have one value as of one version: each round writes all of them in one batch.
std::string seen_in(const Snapshot& snapshot, std::size_t keys, bool& expired) {
  std::string value;
  std::size_t seen = 0;
  const auto scanned = snapshot.scan("", "", [&](std::span<const Item> some) {
    for (const Item& item : some) {
      if (seen == 0) value.assign(item.value);
      if (item.value != value || item.key != eight_digit_key(seen)) value = "torn";
      ++seen;
    }
    return true;
  });
  expired = !scanned && scanned.error().code == Code::snapshot_expired;
  if (!expired && (!scanned || seen != keys)) value = "incomplete";
  return value;
}

// Snapshots expire while they are read: a reader sees one version whole, or that it has expired.
TEST(FullStoreConcurrency, SnapshotsExpireUnderTheirReaders) {
  constexpr std::size_t kKeys = 200;
  constexpr std::size_t kReaders = 2;
  Store store = open_store({.memory_bytes_max = kSmallStoreBytes});
  // Its snapshots may hold next to nothing, so that they expire all the time.
  auto map = store.create_map("map", {.node_bytes = 512, .snapshot_bytes_max = 64 * 1024});
  ASSERT_TRUE(map);
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> expired_count{0};
  std::atomic<std::uint64_t> whole_count{0};
  const auto write_round = [&](std::uint64_t round) {
    WriteBatch batch;
    const std::string value = std::to_string(round) + std::string(60, 'v');
    for (std::size_t i = 0; i < kKeys; ++i) batch.put(eight_digit_key(i), value);
    ASSERT_TRUE(map->write(batch));
  };
  ASSERT_NO_FATAL_FAILURE(write_round(0));
  std::vector<std::thread> readers;
  for (std::size_t reader = 0; reader < kReaders; ++reader) {
    readers.emplace_back([&] {
      while (!done.load()) {
        const auto snapshot = map->snapshot();
        ASSERT_TRUE(snapshot);
        std::string first;
        for (bool expired = false; !expired && !done.load();) {
          const std::string value = seen_in(*snapshot, kKeys, expired);
          ASSERT_NE(value, "torn");
          ASSERT_NE(value, "incomplete");
          if (!expired && first.empty()) first = value;
          if (!value.empty() && !first.empty()) {
            ASSERT_EQ(value, first);
          }
          ++(expired ? expired_count : whole_count);
        }
      }
    });
  }
  const std::uint64_t wanted = kSanitized ? 20 : 200;
  for (std::uint64_t round = 1; expired_count < wanted || whole_count < wanted; ++round) {
    if (testing::Test::HasFailure()) break;
    write_round(round);
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  const std::vector<std::string> wrong = map->audit();
  EXPECT_TRUE(wrong.empty()) << wrong.front();
}

class FullNode : public NodeFixture {};

// A client that stops in the middle of a scan, or with a snapshot: the node frees what it keeps for
// it when others write.
TEST_F(FullNode, AnUnreadScanYieldsToWritesAndErases) {
  constexpr std::uint64_t kLimit = 32 * kMiB;
  config_.memory.limit = kLimit;
  start();
  Store reader = connect();
  Store writer = connect();
  auto read = reader.create_map("map");
  ASSERT_TRUE(read);
  auto written = writer.open_map("map");
  ASSERT_TRUE(written);
  const std::uint64_t items = fill_most(writer, *written, kLimit);
  const auto snapshot = read->snapshot();
  ASSERT_TRUE(snapshot);
  bool first = true;
  std::uint64_t seen = 0;
  const auto scanned = read->scan("", "", [&](std::span<const Item> some) {
    for (const Item& item : some) {
      EXPECT_EQ(item.key, eight_digit_key(seen++));
      EXPECT_EQ(item.value, std::string(100, '0'));
    }
    if (!std::exchange(first, false)) return !testing::Test::HasFailure();
    for (std::uint64_t i = 0; i < items; ++i) {
      const auto put = written->put(eight_digit_key(i), std::string(100, '1'));
      EXPECT_TRUE(put) << message(put.error());
      if (!put) return false;
    }
    for (std::uint64_t i = items / 2; i < items; ++i) {
      const auto erased = written->erase(eight_digit_key(i));
      EXPECT_TRUE(erased && erased->applied);
      if (!erased) return false;
    }
    return true;
  });
  ASSERT_FALSE(scanned);
  EXPECT_EQ(scanned.error().code, Code::snapshot_expired) << message(scanned.error());
  EXPECT_LT(seen, items);
  EXPECT_EQ(snapshot->get(eight_digit_key(0)).error().code, Code::snapshot_expired);
}

class FullNodeConcurrency : public NodeFixture {};

TEST_F(FullNodeConcurrency, ErasesOfSeveralClientsSucceed) {
  const std::uint64_t seed = seed_from_environment(162);
  SCOPED_TRACE(seed_text(seed));
  config_.memory.limit = kSmallStoreBytes;
  config_.node.cores = 2;
  start();
  std::array<Store, 2> stores{connect(), connect()};
  std::atomic<std::size_t> next{0};
  fill_and_erase_together([&]() -> Store& { return stores[next++ % stores.size()]; }, 1, seed);
}

}  // namespace
}  // namespace espalier::test
