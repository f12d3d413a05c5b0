// SPDX-License-Identifier: Apache-2.0
#include "engine/connection_limits.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/places.hpp"

namespace espalier::offload {
namespace {

class ConnectionLimitsTest : public testing::Test {
 protected:
  /// As many as there are places for; returns how many those were.
  std::size_t take_all(const PrincipalRef& account, bool runs_node = false) {
    std::size_t taken = 0;
    for (;; ++taken) {
      auto place = limits_.take(account, runs_node, layout_);
      if (!place) {
        error_ = place.error();
        return taken;
      }
      places_.push_back(std::move(*place));
    }
  }

  ConnectionLimits limits_{{.connections_max = 160}};
  PrincipalAccounts accounts_;
  PrincipalRef greedy_ = accounts_.of("user 1000");
  PrincipalRef other_ = accounts_.of("secret alice");
  PrincipalRef root_ = accounts_.of("user 0");
  wire::ConnectionLayout layout_{64, 64, 1};
  std::vector<ConnectionPlace> places_;
  Error error_{};
};

TEST_F(ConnectionLimitsTest, OnePrincipalHasHalfAndSomeIsKeptForWhoRunsTheNode) {
  EXPECT_EQ(take_all(greedy_), 80u);
  EXPECT_EQ(error_, base::full_error(base::Places::principal_connections, 80));
  EXPECT_EQ(take_all(other_), 70u);  // a sixteenth is kept
  EXPECT_EQ(error_, base::full_error(base::Places::connections, 160));
  EXPECT_EQ(take_all(root_), 0u) << "it does not say that it runs the node";
  EXPECT_EQ(take_all(root_, true), 10u);
  EXPECT_EQ(limits_.numbers().connections, 160u);
  EXPECT_EQ(limits_.numbers().refused, 3u);
  EXPECT_EQ(limits_.numbers().kept, 10u);
  EXPECT_EQ(limits_.taken_by(*other_).count, 70u);
  EXPECT_EQ(limits_.taken_by(*other_).ring_bytes, 70 * layout_.bytes());
  places_.clear();
  EXPECT_EQ(limits_.numbers().connections, 0u);
  EXPECT_EQ(limits_.numbers().ring_bytes, 0u);
  EXPECT_EQ(limits_.taken_by(*other_).count, 0u);
  EXPECT_EQ(take_all(root_, true), 160u) << "who runs the node has no part, but all";
}

TEST_F(ConnectionLimitsTest, AnOwnLimitForEachPrincipal) {
  limits_.set({.connections_max = 160, .principal_max = 7});
  EXPECT_EQ(take_all(greedy_), 7u);
  EXPECT_EQ(take_all(other_), 7u);
}

TEST_F(ConnectionLimitsTest, RingsOfOnePrincipalTakeHalfOfTheirMemory) {
  const std::uint64_t bytes = layout_.bytes();
  limits_.set({.connections_max = 10'000, .ring_bytes_max = 160 * bytes});
  EXPECT_EQ(take_all(greedy_), 80u);
  EXPECT_EQ(error_.code, Code::out_of_memory);
  EXPECT_EQ(take_all(other_), 70u);
  EXPECT_EQ(take_all(root_, true), 10u);
  EXPECT_EQ(limits_.numbers().ring_bytes, 160 * bytes);
}

TEST_F(ConnectionLimitsTest, ByDefaultRingsAreAPartOfTheStoresMemory) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  EXPECT_EQ(ConnectionLimits::default_ring_bytes(1024 * kMiB), 256 * kMiB);
  EXPECT_EQ(ConnectionLimits::default_ring_bytes(256 * kMiB), 64 * kMiB);
  EXPECT_EQ(ConnectionLimits::default_ring_bytes(64 * kMiB), 32 * kMiB);
  EXPECT_EQ(ConnectionLimits::default_ring_bytes(4 * kMiB), 32 * kMiB);
  // With the rings of a usual client, one principal has a dozen even there, and a hundred smaller.
  const wire::ConnectionLayout usual{512, 1024, wire::kResponseRingsMax};
  EXPECT_GE(16 * kMiB / usual.bytes(), 12u);
}

TEST_F(ConnectionLimitsTest, RingsShrinkAsTheirMemoryIsTaken) {
  constexpr std::uint64_t kMax = std::uint64_t{64} << 20;
  limits_.set({.connections_max = 10'000, .ring_bytes_max = kMax});
  const wire::ConnectionLayout asked{512, 1024, wire::kResponseRingsMax};
  const wire::ConnectionLayout least{wire::kRingSlotsMin, wire::kRingSlotsMin,
                                     wire::kResponseRingsMax};
  std::uint64_t before = asked.bytes();
  std::size_t taken = 0;
  for (;; ++taken) {
    wire::ConnectionLayout layout = asked;
    auto place = limits_.take_smaller(greedy_, false, layout);
    if (!place) break;
    ASSERT_TRUE(layout.valid());
    ASSERT_LE(layout.bytes(), before) << taken;
    EXPECT_EQ(layout == asked, layout.bytes() == asked.bytes());
    EXPECT_TRUE(taken != 0 || layout == asked);
    before = layout.bytes();
    places_.push_back(std::move(*place));
  }
  EXPECT_EQ(before, least.bytes());
  EXPECT_GT(taken, kMax / 2 / asked.bytes() * 2);
  EXPECT_LE(limits_.numbers().ring_bytes, kMax / 2);
  wire::ConnectionLayout layout = asked;
  EXPECT_TRUE(limits_.take_smaller(other_, false, layout));
  EXPECT_EQ(layout, asked) << "another one finds half of it";
  // As large as may be is no more than a part either.
  layout = {1u << 14, 1u << 14, wire::kResponseRingsMax};
  ASSERT_TRUE(limits_.take_smaller(other_, false, layout));
  EXPECT_LE(layout.bytes(), kMax / 2 / ConnectionLimits::kRingPart);
}

}  // namespace
}  // namespace espalier::offload
