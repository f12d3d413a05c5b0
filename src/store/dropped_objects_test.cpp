// SPDX-License-Identifier: Apache-2.0
// Dropped objects of a fake kind: when each is freed, in which order, and the bytes it is reported
// to hold until then.
#include "store/dropped_objects.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace espalier::store {
namespace {

constexpr std::uint64_t kStepBytes = 10;

/// An object that takes `steps` steps to free, and records its name when it is destroyed.
class FakeObject : public StoredObject {
 public:
  FakeObject(std::string name, std::uint32_t steps, std::vector<std::string>& gone)
      : name_(std::move(name)), steps_(steps), left_(steps), gone_(gone) {}
  ~FakeObject() override { gone_.push_back(name_); }

  [[nodiscard]] bool is_dropped() const override { return dropped; }
  [[nodiscard]] std::uint64_t memory_bytes() const override { return left_ * kStepBytes; }
  void repack_spares() override {}
  bool free_some(std::uint32_t steps) override {
    left_ -= std::min(left_, steps);
    return left_ == 0;
  }
  [[nodiscard]] std::uint64_t freed_bytes() const override { return (steps_ - left_) * kStepBytes; }

  bool dropped = true;

 private:
  const std::string name_;
  const std::uint32_t steps_;
  std::uint32_t left_;
  std::vector<std::string>& gone_;
};

class OtherObject final : public FakeObject {
  using FakeObject::FakeObject;
};

class DroppedObjectsTest : public ::testing::Test {
 protected:
  using Names = std::vector<std::string>;
  struct alignas(64) Line {
    std::byte bytes[64] = {};
  };

  void add(const std::string& name, std::uint32_t steps) {
    dropped_.add(std::make_unique<FakeObject>(name, steps, gone_));
  }

  Names gone_;  // in this order
  std::vector<Line> memory_{base::EpochTable::bytes(1) / sizeof(Line)};
  base::EpochTable epochs_ =
      base::EpochTable::create(reinterpret_cast<std::byte*>(memory_.data()), 1);
  base::LeaseTable leases_{epochs_};
  DroppedObjects dropped_{epochs_, leases_};
};

TEST_F(DroppedObjectsTest, WithoutLeasesEachGoesAtOnce) {
  add("a", 3);
  EXPECT_EQ(gone_, Names{"a"});
  EXPECT_EQ(dropped_.size(), 0u);
  EXPECT_EQ(dropped_.oldest_stamp(), 0u);
}

TEST_F(DroppedObjectsTest, TheyGoInTheOrderInWhichTheyCame) {
  const auto early = leases_.grant(1, 0);
  add("a", 1);
  add("b", 1);
  const auto late = leases_.grant(2, 0);
  add("c", 1);
  EXPECT_EQ(dropped_.size(), 3u);
  EXPECT_FALSE(dropped_.due());
  leases_.end(early.id);
  EXPECT_TRUE(dropped_.due());
  dropped_.collect();
  EXPECT_EQ(gone_, (Names{"a", "b"})) << "the later lease may be reading the third";
  EXPECT_FALSE(dropped_.due());
  leases_.end(late.id);
  add("d", 1);
  EXPECT_EQ(gone_, (Names{"a", "b", "c", "d"})) << "what comes frees those that wait";
  EXPECT_EQ(dropped_.size(), 0u);
}

TEST_F(DroppedObjectsTest, TheirBytesCountFromTheirStampsOn) {
  const auto lease = leases_.grant(1, 0);
  add("a", 10);
  const std::uint64_t first = dropped_.oldest_stamp();
  add("b", 5);
  EXPECT_EQ(first, lease.epoch);
  EXPECT_EQ(dropped_.bytes(), 15 * kStepBytes);
  EXPECT_EQ(dropped_.bytes_held_since(first), 15 * kStepBytes);
  EXPECT_EQ(dropped_.bytes_held_since(first + 1), 5 * kStepBytes);
  EXPECT_EQ(dropped_.bytes_held_since(first + 2), 0u);
  leases_.end(lease.id);
}

TEST_F(DroppedObjectsTest, InStepsTheFirstGoesOnAndKeepsItsPlace) {
  dropped_.free_in_steps(true);
  add("a", 10);
  add("b", 5);
  EXPECT_TRUE(gone_.empty()) << "others free it";
  EXPECT_TRUE(dropped_.due());
  const std::uint64_t stamp = dropped_.oldest_stamp();

  EXPECT_TRUE(dropped_.collect_some(4));
  EXPECT_EQ(dropped_.bytes(), 11 * kStepBytes);
  EXPECT_EQ(dropped_.oldest_stamp(), stamp);
  EXPECT_EQ(dropped_.size(), 2u);
  EXPECT_TRUE(dropped_.collect_some(4));
  EXPECT_EQ(dropped_.bytes(), 7 * kStepBytes);
  EXPECT_TRUE(gone_.empty());

  EXPECT_TRUE(dropped_.collect_some(4));
  EXPECT_EQ(gone_, Names{"a"});
  EXPECT_EQ(dropped_.bytes(), 5 * kStepBytes);
  EXPECT_GT(dropped_.oldest_stamp(), stamp);
  EXPECT_FALSE(dropped_.collect_some(5)) << "nothing is left";
  EXPECT_EQ(gone_, (Names{"a", "b"}));
  EXPECT_EQ(dropped_.bytes(), 0u);
  EXPECT_FALSE(dropped_.collect_some(5));
}

TEST_F(DroppedObjectsTest, TheOnlyOneIsPutBackAndOthersComeBehindIt) {
  dropped_.free_in_steps(true);
  add("a", 2);
  EXPECT_TRUE(dropped_.collect_some(1));
  add("b", 1);
  EXPECT_EQ(dropped_.size(), 2u);
  EXPECT_TRUE(dropped_.collect_some(1));
  EXPECT_FALSE(dropped_.collect_some(1));
  EXPECT_EQ(gone_, (Names{"a", "b"}));
}

TEST_F(DroppedObjectsTest, NoStepIsTakenWhileALeaseMayRead) {
  dropped_.free_in_steps(true);
  const auto lease = leases_.grant(1, 0);
  add("a", 2);
  EXPECT_FALSE(dropped_.collect_some(1));
  EXPECT_EQ(dropped_.bytes(), 2 * kStepBytes);
  leases_.end(lease.id);
  EXPECT_TRUE(dropped_.collect_some(1));
  EXPECT_EQ(dropped_.bytes(), kStepBytes);
}

TEST_F(DroppedObjectsTest, WhatStillWaitsGoesWithIt) {
  {
    DroppedObjects waiting(epochs_, leases_);
    waiting.free_in_steps(true);
    waiting.add(std::make_unique<FakeObject>("a", 2, gone_));
    waiting.add(std::make_unique<FakeObject>("b", 2, gone_));
    EXPECT_TRUE(waiting.collect_some(1));
  }
  EXPECT_EQ(gone_, (Names{"a", "b"}));
}

TEST_F(DroppedObjectsTest, OneThatWasNotDroppedIsRefused) {
  const auto add_undropped = [this] {
    auto object = std::make_unique<FakeObject>("a", 1, gone_);
    object->dropped = false;
    dropped_.add(std::move(object));
  };
  EXPECT_DEATH(add_undropped(), "is_dropped");
}

TEST(StoredObjects, AreListedByTheirKind) {
  std::vector<std::string> gone;
  FakeObject fake("a", 1, gone);
  OtherObject other("b", 1, gone);
  OtherObject never_added("c", 1, gone);
  StoredObjects objects;
  EXPECT_TRUE(objects.list<FakeObject>().empty());
  objects.add(fake);
  objects.add(other);
  EXPECT_EQ(objects.list<OtherObject>(), std::vector<const OtherObject*>{&other});
  EXPECT_EQ(objects.list<FakeObject>(), (std::vector<const FakeObject*>{&fake, &other}));

  objects.remove(never_added);
  objects.remove(fake);
  EXPECT_EQ(objects.list<FakeObject>(), std::vector<const FakeObject*>{&other});
  std::vector<const StoredObject*> seen;
  objects.for_each([&seen](const StoredObject& object) { seen.push_back(&object); });
  EXPECT_EQ(seen, std::vector<const StoredObject*>{&other});
}

}  // namespace
}  // namespace espalier::store
