// SPDX-License-Identifier: Apache-2.0
// Memory that one size of items gave back serves every other size; a full store still erases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/store.hpp"

namespace espalier::test {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
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
    const auto keys = fill(
        *map, [&] { return 500 + random_.below(65536 - 500 + 1); }, &bytes);
    EXPECT_GE(bytes, 16 * kMiB) << "round " << round;
    ASSERT_NO_FATAL_FAILURE(erase_all(*map, keys));
  }
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

}  // namespace
}  // namespace espalier::test
