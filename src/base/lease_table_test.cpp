// SPDX-License-Identifier: Apache-2.0
#include "base/lease_table.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace espalier::base {
namespace {

class LeaseTableTest : public ::testing::Test {
 protected:
  struct alignas(64) Line {
    std::byte bytes[64] = {};
  };
  std::vector<Line> memory_{EpochTable::bytes(4) / sizeof(Line)};
  EpochTable epochs_ = EpochTable::create(reinterpret_cast<std::byte*>(memory_.data()), 4);
  LeaseTable leases_{epochs_};
};

TEST_F(LeaseTableTest, WithoutLeasesNothingIsHeld) {
  EXPECT_EQ(leases_.oldest(), ~std::uint64_t{0});
  EXPECT_EQ(leases_.size(), 0u);
}

TEST_F(LeaseTableTest, ALeaseHoldsTheEpochAtWhichItWasGranted) {
  const auto lease = leases_.grant(7, 100);
  EXPECT_NE(lease.id, 0u);
  EXPECT_EQ(lease.epoch, epochs_.current());
  epochs_.advance();
  epochs_.advance();
  EXPECT_EQ(leases_.oldest(), lease.epoch);
  leases_.end(lease.id);
  EXPECT_EQ(leases_.oldest(), ~std::uint64_t{0});
  leases_.end(lease.id);  // an unknown one is none
}

TEST_F(LeaseTableTest, ARenewalMovesOnAndTellsThePresentEpoch) {
  const auto lease = leases_.grant(7, 100);
  epochs_.advance();
  const auto first = leases_.renew(lease.id, lease.epoch, 200);
  ASSERT_TRUE(first);
  EXPECT_EQ(*first, lease.epoch + 1);
  EXPECT_EQ(leases_.oldest(), lease.epoch);  // a walk of that epoch may still be in flight
  epochs_.advance();
  const auto second = leases_.renew(lease.id, *first, 300);
  ASSERT_TRUE(second);
  EXPECT_EQ(*second, lease.epoch + 2);
  EXPECT_EQ(leases_.oldest(), *first);
}

TEST_F(LeaseTableTest, ARenewalNeverGoesBack) {
  const auto lease = leases_.grant(7, 100);
  epochs_.advance();
  ASSERT_TRUE(leases_.renew(lease.id, lease.epoch + 1, 200));
  ASSERT_TRUE(leases_.renew(lease.id, lease.epoch, 300));
  EXPECT_EQ(leases_.oldest(), lease.epoch + 1);
}

TEST_F(LeaseTableTest, AnEpochStillToComeIsRefused) {
  const auto lease = leases_.grant(7, 100);
  const auto renewed = leases_.renew(lease.id, lease.epoch + 1, 200);
  ASSERT_FALSE(renewed);
  EXPECT_EQ(renewed.error().code, Code::invalid_argument);
  EXPECT_EQ(leases_.oldest(), lease.epoch);
}

TEST_F(LeaseTableTest, AnEndedLeaseIsNotRenewed) {
  const auto lease = leases_.grant(7, 100);
  leases_.end(lease.id);
  const auto renewed = leases_.renew(lease.id, lease.epoch, 200);
  ASSERT_FALSE(renewed);
  EXPECT_EQ(renewed.error().code, Code::not_found);
}

TEST_F(LeaseTableTest, OverdueAreThoseNotHeardOfAndThoseThatHoldTooMuch) {
  const auto old = leases_.grant(1, 100);
  const auto quiet = leases_.grant(2, 100);
  epochs_.advance();
  const auto lively = leases_.grant(3, 500);
  ASSERT_TRUE(leases_.renew(old.id, old.epoch, 500));
  const auto unheard = leases_.overdue(500);
  ASSERT_EQ(unheard.size(), 1u);
  EXPECT_EQ(unheard.front().id, quiet.id);
  EXPECT_EQ(unheard.front().owner, 2u);
  EXPECT_EQ(leases_.overdue(0, lively.epoch).size(), 2u);  // old and quiet
  EXPECT_EQ(leases_.size(), 3u);
}

TEST_F(LeaseTableTest, ASweepIsAskedForAndTheOldestLeasesAreNamed) {
  const auto first = leases_.grant(7, 100);
  epochs_.advance();
  const auto second = leases_.grant(8, 100);
  EXPECT_EQ(leases_.sweeps_asked(), 0u);
  leases_.ask_for_sweep();
  EXPECT_EQ(leases_.sweeps_asked(), 1u);
  EXPECT_TRUE(leases_.overdue(0, leases_.end_below()).empty());
  leases_.ask_for_sweep(leases_.oldest() + 1);
  leases_.ask_for_sweep(1);  // what was named before stays named
  EXPECT_EQ(leases_.sweeps_asked(), 3u);
  const auto named = leases_.overdue(0, leases_.end_below());
  ASSERT_EQ(named.size(), 1u);
  EXPECT_EQ(named.front().id, first.id);
  leases_.end(first.id);
  leases_.end(second.id);
}

}  // namespace
}  // namespace espalier::base
