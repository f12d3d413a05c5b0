// SPDX-License-Identifier: Apache-2.0
// A datagram is answered to an address that was not proved, and that is noticed.
#include <gtest/gtest.h>

#include "engine/planted_engine_bugs.hpp"
#include "engine/tests/testing/datagram_client.hpp"

namespace espalier::offload {
namespace {

TEST(DatagramRules, ItIsNoticedThatAnUnprovedAddressIsAnswered) {
  const base::Planted planted(Bug::datagram_to_unproved);
  EXPECT_NE(reads_from_unproved_addresses(), "") << "the bug was not noticed";
}

TEST(DatagramRules, TheSceneIsRightWithoutABug) {
  EXPECT_EQ(reads_from_unproved_addresses(), "");
}

}  // namespace
}  // namespace espalier::offload
