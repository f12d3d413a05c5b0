// SPDX-License-Identifier: Apache-2.0
#include "engine/peer_sources.hpp"

#include <gtest/gtest.h>

#include <string>

namespace espalier::offload {
namespace {

constexpr std::uint64_t kS = 1'000'000'000;

TEST(PeerSources, APlaceIsAnAddressOrANetwork) {
  EXPECT_EQ(source_of("192.0.2.1:4791"), "192.0.2.1");
  EXPECT_EQ(source_of("192.0.2.1:1"), source_of("192.0.2.1:65535"));
  EXPECT_NE(source_of("192.0.2.1:1"), source_of("192.0.2.2:1"));
  EXPECT_EQ(source_of("[::ffff:192.0.2.1]:7"), "192.0.2.1");
  EXPECT_EQ(source_of("[2001:db8:1:2:3:4:5:6]:7"), "2001:db8:1:2::/64");
  EXPECT_EQ(source_of("[2001:db8:1:2:ffff::1]:9"), source_of("2001:db8:1:2::"));
  EXPECT_NE(source_of("[2001:db8:1:3::1]:7"), source_of("[2001:db8:1:2::1]:7"));
  for (const std::string_view other :
       {"h", "", "[", "[]:1", ":", "1.2.3:4", "process 7 of user 0"}) {
    EXPECT_EQ(source_of(other), other);
  }
}

TEST(PeerSources, OnePlaceHoldsSoManyAndOthersAsMany) {
  PeerSources sources;
  for (std::uint32_t i = 0; i < PeerSources::kPendingMax; ++i) EXPECT_TRUE(sources.enter("a", 0));
  EXPECT_FALSE(sources.enter("a", 100 * kS)) << "time changes nothing";
  EXPECT_TRUE(sources.enter("b", 0));
  sources.left("a");
  EXPECT_TRUE(sources.enter("a", 0));
  for (std::uint32_t i = 0; i < PeerSources::kPendingMax; ++i) sources.left("a");
  sources.left("b");
  EXPECT_EQ(sources.size(), 0u) << "nothing is kept of places that did nothing wrong";
}

TEST(PeerSources, WrongProofsAreAnsweredEverLaterAndForgottenInTime) {
  PeerSources sources;
  std::uint64_t before = 0;
  for (std::uint32_t i = 0; i < PeerSources::kSuspect; ++i) {
    ASSERT_TRUE(sources.enter("a", kS));
    const std::uint64_t delay = sources.wrong("a", kS);
    EXPECT_EQ(delay, before == 0 ? PeerSources::kDelayNs : 2 * before);
    before = delay;
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_LE(sources.wrong("a", kS), PeerSources::kDelayMaxNs);
  }
  EXPECT_EQ(sources.wrong("a", kS), PeerSources::kDelayMaxNs);
  EXPECT_EQ(sources.wrong("b", kS), PeerSources::kDelayNs) << "that is another";
  EXPECT_FALSE(sources.enter("a", kS)) << "such a place holds fewer";
  for (std::uint32_t i = 0; i < PeerSources::kSuspect; ++i) sources.left("a");
  for (std::uint32_t i = 0; i < PeerSources::kSuspectPendingMax; ++i) {
    EXPECT_TRUE(sources.enter("a", kS));
  }
  EXPECT_FALSE(sources.enter("a", kS));
  const std::uint64_t later = kS + 10 * PeerSources::kHalfLifeNs;
  EXPECT_TRUE(sources.enter("a", later));
  EXPECT_EQ(sources.wrong("a", later), PeerSources::kDelayNs);
}

TEST(PeerSources, KeepsABoundedNumberOfPlaces) {
  PeerSources sources;
  ASSERT_TRUE(sources.enter("pending", 0));
  for (std::size_t i = 0; i < 2 * PeerSources::kSourcesMax; ++i) {
    static_cast<void>(sources.wrong(std::to_string(i), i));
  }
  EXPECT_LE(sources.size(), PeerSources::kSourcesMax);
  for (std::uint32_t i = 1; i < PeerSources::kPendingMax; ++i) {
    EXPECT_TRUE(sources.enter("pending", 0));
  }
  EXPECT_FALSE(sources.enter("pending", 0)) << "those with pending peers stay";
}

}  // namespace
}  // namespace espalier::offload
