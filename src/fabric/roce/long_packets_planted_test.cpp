// SPDX-License-Identifier: Apache-2.0
// The checks of packets that are too long for the way (long_packets_test.cpp) see it when what the
// peer says again and again to be missing is sent for ever.
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "fabric/planted_fabric_bugs.hpp"
#include "fabric/roce/testing/long_packet_checks.hpp"

namespace espalier::fabric::roce::long_packets {
namespace {

TEST(LongPacketRules, RetriesThatCountInSilenceOnlyAreNoticed) {
  const std::uint64_t seed = base::seed_from_environment(97);
  EXPECT_EQ(ends(seed, Opcode::write, Lost::to_far, 1), "");
  const base::Planted planted(Bug::retries_in_silence_only);
  EXPECT_EQ(ends(seed, Opcode::write, Lost::to_far, 1), "it never ends");
}

}  // namespace
}  // namespace espalier::fabric::roce::long_packets
