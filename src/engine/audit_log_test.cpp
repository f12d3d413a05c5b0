// SPDX-License-Identifier: Apache-2.0
#include "engine/audit_log.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace espalier::offload {
namespace {

class AuditLogTest : public testing::Test {
 protected:
  AuditLogTest() { log_.open(); }
  void refuse(const std::string& name, const std::string& principal = "user 1000") {
    log_.refused(principal, [&] {
      ++made_;
      AuditRecord record;
      record.act = "put";
      record.name = name;
      return record;
    });
  }
  void act(const std::string& name) {
    log_.acted([&] {
      AuditRecord record;
      record.act = "map_create";
      record.name = name;
      return record;
    });
  }
  std::vector<AuditRecord> take_all() {
    std::vector<AuditRecord> taken;
    while (auto record = log_.take()) taken.push_back(std::move(*record));
    return taken;
  }

  std::uint64_t now_ns_ = 5;
  AuditLog log_{[this] { return now_ns_; }};
  std::uint64_t made_ = 0;
};

TEST_F(AuditLogTest, KeepsRecordsInTheirOrder) {
  refuse("a");
  act("b");
  refuse("c");
  const auto taken = take_all();
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_EQ(taken[0].name, "a");
  EXPECT_TRUE(taken[0].refusal);
  EXPECT_EQ(taken[1].name, "b");
  EXPECT_FALSE(taken[1].refusal);
  EXPECT_EQ(taken[2].name, "c");
  EXPECT_EQ(log_.left_out(), 0u);
}

TEST_F(AuditLogTest, LeavesOutRefusalsThatComeTooFastAndTellsHowMany) {
  for (std::uint64_t i = 0; i < AuditLog::kBurst + 1000; ++i) refuse("x");
  act("admin");  // which is no refusal, and always kept
  EXPECT_EQ(made_, AuditLog::kBurst) << "what is left out costs nothing to make";
  auto taken = take_all();
  ASSERT_EQ(taken.size(), AuditLog::kBurst + 1);
  EXPECT_EQ(taken.back().name, "admin");
  EXPECT_EQ(taken.back().left_out, 1000u);
  refuse("x");
  EXPECT_TRUE(take_all().empty()) << "no record tells of it while none may be written";
  now_ns_ += AuditLog::kRefillNs;
  taken = take_all();
  ASSERT_EQ(taken.size(), 1u) << "nothing else comes, so it has a record of its own";
  EXPECT_EQ(taken[0].act, "");
  EXPECT_EQ(taken[0].left_out, 1u);
  now_ns_ += AuditLog::kRefillNs;
  refuse("y");
  taken = take_all();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].name, "y");
  EXPECT_EQ(taken[0].left_out, 0u);
  EXPECT_EQ(log_.left_out(), 1001u);
}

TEST_F(AuditLogTest, OnePrincipalLeavesOutNoRefusalsOfOthers) {
  for (std::uint64_t i = 0; i < AuditLog::kBurst + 1000; ++i) refuse("noisy", "user 1000");
  refuse("user", "user 1001");
  refuse("secret", "secret alice");
  refuse("place", "address 192.0.2.1");
  const auto taken = take_all();
  ASSERT_EQ(taken.size(), AuditLog::kBurst + 3);
  EXPECT_EQ(taken[AuditLog::kBurst].name, "user");
  EXPECT_EQ(taken[AuditLog::kBurst].left_out, 1000u);
  EXPECT_EQ(taken[AuditLog::kBurst + 1].name, "secret");
  EXPECT_EQ(taken[AuditLog::kBurst + 2].name, "place");
}

// There are as many addresses as a peer likes to forge.
TEST_F(AuditLogTest, AddressesWithoutNumberLeaveOutNoneOfUsersAndAreBounded) {
  for (int i = 0; i < 100'000; ++i) refuse("flood", "address " + std::to_string(i));
  EXPECT_LE(made_, AuditLog::kPlacesMax + AuditLog::kBurst);
  const std::uint64_t before = made_;
  refuse("user", "user 1001");
  EXPECT_EQ(made_, before + 1);
  take_all();
  now_ns_ += 2 * AuditLog::kRefillNs;  // all buckets of addresses are full again, and forgotten
  for (int i = 0; i < 10; ++i) refuse("later", "address later " + std::to_string(i));
  EXPECT_EQ(made_, before + 11);
}

TEST_F(AuditLogTest, WhatThereIsNoMemoryForIsCounted) {
  log_.acted([]() -> AuditRecord { throw std::bad_alloc(); });
  act("a");
  const auto taken = take_all();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].left_out, 1u);
}

// A day of refusals as fast as they can be had is some tens of thousands of lines.
TEST_F(AuditLogTest, ADayOfRefusalsIsBounded) {
  std::uint64_t lines = 0;
  std::uint64_t left_out = 0;
  constexpr std::uint64_t kStepNs = AuditLog::kRefillNs / 4;
  constexpr std::uint64_t kSteps = std::uint64_t{24} * 3600 * 4;
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    now_ns_ += kStepNs;
    refuse("x");
    for (const AuditRecord& record : take_all()) {
      ++lines;
      left_out += record.left_out;
    }
  }
  EXPECT_LE(lines, std::uint64_t{24} * 3600 + AuditLog::kBurst);
  EXPECT_GE(lines, std::uint64_t{24} * 3600);
  // Records of the last second are counted in the next line.
  EXPECT_LE(kSteps - lines, left_out + 4) << "each refusal has a line or is counted in one";
}

TEST_F(AuditLogTest, TheQueueIsBounded) {
  for (std::size_t i = 0; i < AuditLog::kWaitingMax + 7; ++i) act("a");
  EXPECT_EQ(log_.left_out(), 7u);
  auto taken = take_all();
  ASSERT_EQ(taken.size(), AuditLog::kWaitingMax + 1);
  EXPECT_EQ(taken.back().left_out, 7u);
}

TEST_F(AuditLogTest, WhoWaitsIsWokenByARecordAndByTheEnd) {
  std::vector<std::string> names;
  std::thread writer([&] {
    bool more = true;
    while (more) {
      more = log_.wait();
      while (auto record = log_.take()) names.push_back(record->name);
    }
  });
  act("a");
  refuse("b");
  log_.stop();
  writer.join();
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b"}));
}

TEST(AuditLog, KeepsNothingWhileNobodyTakes) {
  AuditLog log;
  const auto make = [] {
    ADD_FAILURE() << "no record is wanted";
    return AuditRecord{};
  };
  log.acted(make);
  log.refused("user 1", make);
  EXPECT_FALSE(log.take());
  EXPECT_EQ(log.left_out(), 0u);
}

}  // namespace
}  // namespace espalier::offload
