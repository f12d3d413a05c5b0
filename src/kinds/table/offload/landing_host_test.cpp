// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/offload/landing_host.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "kinds/table/format/landing.hpp"

namespace espalier::offload {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class LandingHosts : public ::testing::Test {
 protected:
  void SetUp() override { host_.emplace(*regions_, fabric::Domain{3}, false, budget_, share_); }

  std::shared_ptr<fabric::RegionTable> regions_ = *fabric::RegionTable::create(1);
  rings::MessageBudget budget_{16 * kMiB};
  rings::MessageShare share_{budget_};
  std::optional<LandingHost> host_;
};

TEST_F(LandingHosts, WindowsAreOfTheShareAndComeBack) {
  const auto window = host_->open(1);
  ASSERT_TRUE(window);
  EXPECT_NE(window->window, 0u);
  EXPECT_EQ(window->region.bytes, 4096u);  // whole pages
  EXPECT_EQ(budget_.used(), 4096u);
  ASSERT_NE(host_->find(window->window), nullptr);
  EXPECT_EQ(host_->find(window->window + 1), nullptr);
  EXPECT_TRUE(host_->close(window->window));
  EXPECT_FALSE(host_->close(window->window));
  EXPECT_EQ(host_->find(window->window), nullptr);
  EXPECT_EQ(budget_.used(), 0u);
}

TEST_F(LandingHosts, WhatASessionMayHaveIsBounded) {
  EXPECT_EQ(host_->open(0).error().code, Code::invalid_argument);
  EXPECT_EQ(host_->open(fabric::LandingRegion::kBytesMax + 1).error().code, Code::invalid_argument);
  EXPECT_EQ(host_->open(~std::uint64_t{0}).error().code, Code::invalid_argument);
  // Half of what there is: others get as much.
  EXPECT_EQ(host_->open(9 * kMiB).error().code, Code::out_of_memory);
  ASSERT_TRUE(host_->open(5 * kMiB));
  EXPECT_EQ(host_->open(5 * kMiB).error().code, Code::out_of_memory);
  for (std::uint32_t i = 1; i < wire::kLandingWindowsMax; ++i) ASSERT_TRUE(host_->open(4096)) << i;
  EXPECT_EQ(host_->open(4096).error().code, Code::too_many_participants);
  host_.reset();
  EXPECT_EQ(budget_.used(), 0u);
}

TEST_F(LandingHosts, AWindowThatIsReadOutlivesItsSession) {
  const auto opened = host_->open(kMiB);
  ASSERT_TRUE(opened);
  const auto window = host_->find(opened->window);
  host_.reset();
  EXPECT_EQ(budget_.used(), kMiB);
  std::byte into[64];
  EXPECT_EQ(window->region().read_once(kMiB - 32, into).size(), 32u);
  EXPECT_EQ(window->region().read_once(kMiB, into).size(), 0u);
}

}  // namespace
}  // namespace espalier::offload
