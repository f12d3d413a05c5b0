// SPDX-License-Identifier: Apache-2.0
#include "memory/holders.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "memory/testing/reclaimer_checks.hpp"

namespace espalier::memory {
namespace {

constexpr std::uint64_t kBuffer = class_bytes(ReclaimerUnderTest::kClass);

// "snapshot old 4", by what each holds in buffers.
std::vector<std::string> lines(const std::vector<Holder>& holders) {
  std::vector<std::string> listed;
  for (const Holder& holder : holders) {
    EXPECT_EQ(holder.bytes % kBuffer, 0u);
    listed.push_back(name_of(holder.kind) + (' ' + holder.owner) + ' ' +
                     std::to_string(holder.bytes / kBuffer));
  }
  return listed;
}

TEST(Holders, AreListedWithTheMostBytesFirst) {
  ReclaimerUnderTest under;
  ObjectUnderTest& object = under.object;
  const auto retire_some = [&](int count) {
    for (int i = 0; i < count; ++i) under.retire(object.write());
    under.collect();
  };
  const auto old = under.reclaimer.hold(object, object.clock.released(), "old");
  retire_some(4);  // held
  auto behind = under.join();
  behind.enter();
  retire_some(2);
  const auto lease = under.leases.grant(3, 0);
  retire_some(1);
  auto keeps_up = under.join();
  keeps_up.enter();
  ASSERT_GT(keeps_up.exposed(), behind.exposed());
  const auto newest = under.reclaimer.hold(object, object.clock.released(), "newest");

  const auto others = [&](std::uint64_t epoch) { return epoch == lease.epoch ? 8 * kBuffer : 0; };
  const auto holders = under.reclaimer.holders(others);
  const std::string process = std::to_string(under.epochs.exposed().front().process);
  const std::vector<std::string> listed = lines(holders);
  ASSERT_EQ(listed.size(), 4u) << "a reader that keeps up is left out";
  EXPECT_EQ(listed[0], "lease session 3 9");
  EXPECT_EQ(listed[1], "snapshot old 4");
  EXPECT_EQ(listed[2], "epoch process " + process + " 3");
  EXPECT_EQ(listed[3], "snapshot newest 0");
  EXPECT_EQ(holders[0].since, lease.epoch);
  EXPECT_EQ(holders[1].since, old->version);
  EXPECT_EQ(holders[1].object, "object");
  EXPECT_EQ(holders[2].since, behind.exposed());

  const std::vector<std::string> two = lines(under.reclaimer.holders(others, 2));
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0], listed[0]);
  EXPECT_EQ(two[1], listed[1]);
  under.reclaimer.drop(object, newest);
  under.reclaimer.drop(object, old);
}

}  // namespace
}  // namespace espalier::memory
