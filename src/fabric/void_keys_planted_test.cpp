// SPDX-License-Identifier: Apache-2.0
// The rules of void keys are broken one at a time, and a check notices.
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "fabric/planted_fabric_bugs.hpp"
#include "fabric/testing/void_key_checks.hpp"

namespace espalier::fabric {
namespace {

// Which thread is too early or too late depends on how threads run: so there are many rounds; the
// first that finds something ends the check.
constexpr std::uint64_t kRounds = 20'000;

TEST(VoidKeyRules, BytesByAVoidKeyAreNoticed) {
  const base::Planted planted(Bug::void_key_serves_bytes);
  EXPECT_EQ(void_keys_under_readers(base::seed_from_environment(60), 1),
            "a void key brought bytes");
}

TEST(VoidKeyRules, AMakeVoidThatWaitsForNobodyIsNoticed) {
  const base::Planted planted(Bug::void_waits_for_nobody);
  EXPECT_NE(void_keys_under_readers(base::seed_from_environment(61), kRounds), "");
}

TEST(VoidKeyRules, AReadOverShmThatLooksBeforeOnlyIsNoticed) {
  const base::Planted planted(Bug::void_seen_before_only);
  EXPECT_NE(void_keys_over_shm(base::seed_from_environment(62), 1000), "");
}

TEST(VoidKeyRules, WithoutABugNothingIsNoticed) {
  EXPECT_EQ(void_keys_under_readers(base::seed_from_environment(60), 50), "");
  EXPECT_EQ(void_keys_over_shm(base::seed_from_environment(62), 10), "");
}

}  // namespace
}  // namespace espalier::fabric
