// SPDX-License-Identifier: Apache-2.0
// The checks of proofs notice each rule that is broken.
#include <gtest/gtest.h>

#include <string>

#include "channel/rings/planted_client_bugs.hpp"
#include "channel/rings/tests/testing/secret_checks.hpp"

namespace espalier::client {
namespace {

using FabricBug = fabric::Bug;

void expect_noticed(const std::string& wrong, const char* what) {
  EXPECT_NE(wrong, "") << "the bug was not noticed";
  EXPECT_NE(wrong.find(what), std::string::npos) << wrong;
}

TEST(SecretRules, AChallengeThatComesTwiceIsNoticed) {
  const base::Planted planted(FabricBug::challenge_repeated);
  expect_noticed(check_challenges_differ(), "comes twice");
}

TEST(SecretRules, AProofThatNobodyChecksIsNoticed) {
  const base::Planted planted(FabricBug::proof_not_checked);
  expect_noticed(check_wrong_secrets(), "by a wrong secret");
  expect_noticed(check_proofs_said_again(), "taken twice");
}

TEST(SecretRules, AHelloThatIsTakenTwiceIsNoticed) {
  const base::Planted planted(FabricBug::hello_taken_twice);
  expect_noticed(check_hellos_said_again(), "taken twice");
}

TEST(SecretRules, AHelloThatIsTakenLateIsNoticed) {
  const base::Planted planted(FabricBug::hello_taken_late);
  expect_noticed(check_hellos_said_late(), "taken late");
}

TEST(SecretRules, AClientThatBelievesAnyNodeIsNoticed) {
  const base::Planted planted(Bug::node_proof_not_checked);
  expect_noticed(check_rogue_nodes(), "rogue node");
}

TEST(SecretRules, AClientThatDrawsNothingIsNoticed) {
  const base::Planted planted(Bug::proof_nonce_repeated);
  expect_noticed(check_rogue_nodes(), "the same number");
}

}  // namespace
}  // namespace espalier::client
