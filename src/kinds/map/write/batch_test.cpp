// SPDX-License-Identifier: Apache-2.0
// What map_calls_test.cpp, the models and the fault tests do not see through Map::write: the
// outcome itself, before any wait.
#include "kinds/map/write/batch.hpp"

#include <gtest/gtest.h>

#include "kinds/map/testing/tree_fixture.hpp"
#include "kinds/map/write/audit.hpp"

namespace espalier::tree {
namespace {

using Kind = ConditionKind;

class BatchTest : public ::testing::Test, protected TreeFixture {
 protected:
  Result<BatchApplied> apply(const std::vector<BatchWrite>& writes,
                             const std::vector<BatchCheck>& checks = {}) {
    return apply_batch(context(), map(), writes, checks);
  }
  Code refusal(const std::vector<BatchWrite>& writes, const std::vector<BatchCheck>& checks = {}) {
    const auto applied = apply(writes, checks);
    return applied ? Code::invalid : applied.error().code;
  }
  std::string get(std::string_view key) {
    OneAnswer answer;
    return run(request(Op::get, key), answer).found ? answer.value : "(nothing)";
  }
  std::uint64_t buffers_in_use() {
    context().cache.flush();
    std::uint64_t all = 0;
    for (memory::SizeClass cls = 0; cls < memory::kClasses; ++cls) {
      all += store().pool.stats(cls).in_use;
    }
    return all;
  }
};

TEST_F(BatchTest, TakesKeysInAnyOrderAndTheLastWriteOfEach) {
  put("gone", "old");
  const auto applied =
      apply({{"z", "1"}, {"a", "1"}, {"gone", {}, true}, {"z", "2"}, {"a", "", true}});
  ASSERT_TRUE(applied);
  EXPECT_EQ(applied->version, 2u);
  EXPECT_EQ(applied->wait_for, 2u);
  EXPECT_TRUE(applied->existed);
  EXPECT_EQ(applied->failed_check, std::nullopt);
  EXPECT_EQ(get("z"), "2");
  EXPECT_EQ(get("a"), "(nothing)");
  EXPECT_EQ(get("gone"), "(nothing)");
  EXPECT_FALSE(apply({{"new", "1"}})->existed);
}

// An answer "it failed" may not overtake the write that made it fail.
TEST_F(BatchTest, AFailedCheckNamesItselfAndWhatToWaitFor) {
  put("key", "value");
  const std::uint64_t version = put("key", "other").version;
  const auto applied = apply({{"a", "1"}}, {{"key", {Kind::present, 0, {}}},
                                            {"none", {Kind::none, 0, {}}},
                                            {"key", {Kind::value, 0, "value"}},
                                            {"key", {Kind::absent, 0, {}}}});
  ASSERT_TRUE(applied);
  EXPECT_EQ(applied->failed_check, 2u);
  EXPECT_GE(applied->wait_for, version);
  EXPECT_EQ(get("a"), "(nothing)");
  EXPECT_EQ(apply({{"a", "1"}}, {{"key", {Kind::version, version, {}}}})->failed_check,
            std::nullopt);
  EXPECT_EQ(get("a"), "1");
}

TEST_F(BatchTest, ValuesOutOfLineAreKeptOrTakenBack) {
  const std::string large(5000, 'v');
  const std::uint64_t before = buffers_in_use();
  EXPECT_EQ(apply({{"a", large}, {"b", large}}, {{"a", {Kind::present, 0, {}}}})->failed_check, 0u);
  EXPECT_EQ(buffers_in_use(), before);
  EXPECT_EQ(apply({{"a", large}, {"b", large}, {"b", large}})->failed_check, std::nullopt);
  EXPECT_EQ(get("b"), large);
  EXPECT_EQ(buffers_in_use(), before + 2);
  EXPECT_EQ(audit(map()), std::vector<std::string>{});
}

// Keys that come at one end and go at the other, by batches alone: the leaves that they leave
// behind must go too.
TEST_F(BatchTest, ErasedRangesLeaveNoEmptyLeaves) {
  constexpr int kKeys = 20'000;
  constexpr int kTogether = 50;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::string> keys;
    for (int i = 0; i < kKeys; ++i) keys.push_back(std::to_string(1'000'000 * (round + 1) + i));
    for (const bool erase : {false, true}) {
      for (int at = 0; at < kKeys; at += kTogether) {
        std::vector<BatchWrite> batch;
        for (int i = at; i < at + kTogether; ++i) batch.push_back({keys[i], "value", erase});
        const auto applied = apply(batch);
        ASSERT_TRUE(applied);
        ASSERT_EQ(applied->existed, erase);
      }
      EXPECT_GE(map().leaves.load(), erase ? 1u : 100u);
    }
    EXPECT_EQ(map().items.sum(), 0u);
    EXPECT_LE(map().leaves.load(), 3u) << round;
    EXPECT_EQ(audit_store(store()), std::vector<std::string>{});
  }
}

TEST_F(BatchTest, ErasingMostKeysByBatchesLeavesFewLeaves) {
  constexpr int kKeys = 20'000;
  for (int i = 0; i < kKeys; ++i) put(std::to_string(1'000'000 + i), "value");
  const std::uint64_t full = map().leaves.load();
  // Nine keys of ten, in batches of which each has keys of many leaves.
  for (int first = 0; first < 200; ++first) {
    std::vector<std::string> keys;
    for (int i = first; i < kKeys; i += 200) {
      if (i / 200 % 10 != 0) keys.push_back(std::to_string(1'000'000 + i));
    }
    std::vector<BatchWrite> batch;
    for (const std::string& key : keys) batch.push_back({key, {}, true});
    ASSERT_TRUE(apply(batch));
  }
  EXPECT_EQ(map().items.sum(), kKeys / 10u);
  EXPECT_LE(map().leaves.load(), full / 3);
  EXPECT_EQ(get("1000000"), "value");
  EXPECT_EQ(audit_store(store()), std::vector<std::string>{});
}

TEST_F(BatchTest, RefusesWhatIsTooLong) {
  const std::string key(map().geometry.key_bytes_max + 1, 'k');
  const std::string value(wire::kValueBytesMax + 1, 'v');
  EXPECT_EQ(refusal({}), Code::invalid_argument);
  EXPECT_EQ(refusal({{key, "1"}}), Code::key_too_long);
  EXPECT_EQ(refusal({{"", "1"}}), Code::key_too_long);
  EXPECT_EQ(refusal({{"a", "1"}}, {{key, {Kind::absent, 0, {}}}}), Code::key_too_long);
  EXPECT_EQ(refusal({{"a", value}}), Code::value_too_long);
  EXPECT_EQ(refusal(std::vector<BatchWrite>(kBatchWritesMax + 1, {"a", "1"})),
            Code::invalid_argument);
  EXPECT_EQ(refusal({{"a", "1"}},
                    std::vector<BatchCheck>(kBatchChecksMax + 1, {"a", {Kind::absent, 0, {}}})),
            Code::invalid_argument);
  EXPECT_EQ(get("a"), "(nothing)");
  EXPECT_EQ(refusal(std::vector<BatchWrite>(kBatchWritesMax, {"a", "1"})), Code::invalid);
  EXPECT_EQ(get("a"), "1");
}

}  // namespace
}  // namespace espalier::tree
