// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/write_redo.hpp"

#include <gtest/gtest.h>

#include "kinds/map/testing/redo_maps.hpp"
#include "kinds/map/write/batch.hpp"

namespace espalier::tree {
namespace {

class WriteRedoTest : public RedoMaps {
 protected:
  WriteRedoTest() { EXPECT_EQ(sink_.count(), 1u); }  // the map was made

  Result<BatchApplied> apply_batch(const std::vector<BatchWrite>& writes,
                                   const std::vector<BatchCheck>& checks = {}) {
    return tree::apply_batch(context_, user_.map(), writes, checks);
  }
  [[nodiscard]] std::string last() const { return catalog::hex_of(sink_.records().back()); }
  std::uint64_t in_use() {
    context_.cache.flush();
    return buffers_in_use(store_);
  }

  MapUser user_{context_, create({.node_bytes = 512})};
};

TEST_F(WriteRedoTest, GoldenBytes) {
  user_.put("key", "value");
  EXPECT_EQ(last(),
            "3000000000000000 0100000001100000 0100000000000000 0100000000000000 "
            "0500000003000100 6b657976616c7565");
  user_.write(Op::erase, "key");
  EXPECT_EQ(last(),
            "2b00000000000000 0100000001100000 0200000000000000 0100000000000000 "
            "0000000003000200 6b6579");
  ASSERT_TRUE(apply_batch({{"b", "2"}, {"a", "1"}, {"c", {}, true}, {"a", "3"}}));
  EXPECT_EQ(last(),
            "3d00000000000000 0100000001100000 0300000000000000 0300000000000000 "
            "0100000001000100 6133010000000100 0100623200000000 0100020063");
}

TEST_F(WriteRedoTest, GoldenBytesOfAChangeOfStructure) {
  WriteRedo::of_structure(user_.map())->hand_over(9);
  EXPECT_EQ(last(), "2000000000000000 0100000001110000 0900000000000000 0000000000000000");
}

TEST_F(WriteRedoTest, GoldenBytesOfAMapThatWasMade) {
  EXPECT_EQ(last(),
            "3300000000000000 0100000001010000 1800000003000000 6d61700000001000 "
            "0000000002000000 0200000100000000 000000");
}

TEST_F(WriteRedoTest, InsertsAndUpdatesAreRecordedAsWhatTheyDid) {
  ASSERT_TRUE(user_.write(Op::insert, "key", "1").applied);
  ASSERT_TRUE(user_.write(Op::update, "key", "2").applied);
  const auto records = map_records(sink_);
  ASSERT_EQ(records.size(), 2u);
  for (const MapRedo& record : records) {
    EXPECT_EQ(writes_of(record).front().op, WriteOp::put);
    EXPECT_EQ(writes_of(record).front().key, "key");
  }
  EXPECT_EQ(writes_of(records.back()).front().value, "2");
  EXPECT_EQ(records.back().version, user_.version("key"));
}

// Nor is what was added: the record has the sum, which is made when there is room for it already.
TEST_F(WriteRedoTest, AddsAreRecordedAsTheirSums) {
  Addition addition{.amount = 3};
  for (std::uint64_t sum = 3; sum <= 3000; sum += 3) {
    ASSERT_TRUE(user_.add("key", addition).applied);
    ASSERT_EQ(addition.sum, sum);
    ASSERT_EQ(user_.get("key"), base::bytes_of(sum));
  }
  std::uint64_t sum = 0;
  for (const MapRedo& record : map_records(sink_)) {
    ASSERT_EQ(record.type, RedoType::written);
    sum += 3;
    ASSERT_EQ(writes_of(record).front().value, base::bytes_of(sum));
  }
  EXPECT_EQ(sum, 3000u);
  EXPECT_GT(user_.map().log_merges.sum(), 0u);
}

TEST_F(WriteRedoTest, WhatDoesNothingIsNotRecorded) {
  user_.put("key", "1");
  const std::size_t before = sink_.count();
  EXPECT_FALSE(user_.write(Op::insert, "key", "2").applied);
  EXPECT_FALSE(user_.write(Op::update, "none", "2").applied);
  EXPECT_FALSE(user_.write(Op::erase, "none").applied);
  Addition addition{.amount = 1};
  EXPECT_EQ(user_.add("key", addition).error, (Error{Code::invalid_argument, 0, 1}));
  const auto failed = apply_batch({{"a", "1"}}, {{"key", {ConditionKind::absent, 0, {}}}});
  EXPECT_EQ(failed->failed_check, 0u);
  EXPECT_EQ(apply_batch({}).error().code, Code::invalid_argument);
  EXPECT_EQ(sink_.count(), before);
  EXPECT_EQ(sink_.rooms(), 0u);
}

TEST_F(WriteRedoTest, LongValuesAreInTheirRecords) {
  const std::string value(100'000, 'v');
  user_.put("key", value);
  EXPECT_EQ(writes_of(map_records(sink_).back()).front().value, value);
  ASSERT_TRUE(apply_batch({{"a", "short"}, {"b", value}}));
  EXPECT_EQ(writes_of(map_records(sink_).back()).back().value, value);
}

TEST_F(WriteRedoTest, WithoutRoomAWriteIsRefusedAndNothingIsChanged) {
  const std::string value(5000, 'v');
  user_.put("key", value);
  const auto items = user_.items();
  const std::uint64_t used = in_use();
  const std::uint64_t taken = user_.map().clock.taken();
  sink_.refuse(true);
  for (const Op op : {Op::put, Op::update, Op::erase}) {
    const Completion done = user_.write(op, "key", "2");
    EXPECT_FALSE(done.ok || done.applied);
    EXPECT_EQ(done.error.code, Code::busy);
  }
  EXPECT_EQ(user_.put("key", value).error.code, Code::busy);
  EXPECT_EQ(user_.write(Op::insert, "other", value).error.code, Code::busy);
  EXPECT_EQ(apply_batch({{"key", "2"}, {"a", value}}).error().code, Code::busy);
  EXPECT_EQ(user_.items(), items);
  EXPECT_EQ(in_use(), used);
  EXPECT_EQ(user_.map().clock.taken(), taken);
  sink_.refuse(false);
  EXPECT_TRUE(user_.put("key", "2").applied);
  EXPECT_EQ(user_.get("key"), "2");
  EXPECT_EQ(audit(user_.map()), std::vector<std::string>{});
}

// Such as find their leaf full have reserved room once more by then.
TEST_F(WriteRedoTest, EachVersionIsThatOfOneRecord) {
  for (int i = 0; i < 2000; ++i) user_.put(TreeFixture::numbered(i), "value");
  for (int i = 0; i < 1900; i += 19) {
    std::vector<std::string> keys;
    std::vector<BatchWrite> erases;
    for (int j = i; j < i + 19; ++j) keys.push_back(TreeFixture::numbered(j));
    for (const std::string& key : keys) erases.push_back({key, {}, true});
    ASSERT_TRUE(apply_batch(erases));
  }
  ASSERT_GT(user_.map().splits.load(), 0u);
  ASSERT_GT(user_.map().merges.load(), 0u);
  bool restructured = false;
  std::uint64_t version = 0;
  for (const MapRedo& record : map_records(sink_)) {
    ASSERT_EQ(record.version, ++version);
    restructured = restructured || record.type == RedoType::restructured;
  }
  EXPECT_TRUE(restructured);
  EXPECT_EQ(version, user_.map().clock.taken());
  EXPECT_EQ(sink_.rooms(), 0u);
}

TEST(WriteRedo, IsHandedOverUnderTheLockAndBeforeTheRelease) {
  for (const RedoWay way : kRedoWays) {
    EXPECT_TRUE(records_come_under_the_lock(way)) << static_cast<int>(way);
  }
  EXPECT_TRUE(records_come_before_their_release());
}

TEST(WriteRedo, ReadersSeeWhatIsDurable) { EXPECT_TRUE(readers_see_what_is_durable()); }

}  // namespace
}  // namespace espalier::tree
