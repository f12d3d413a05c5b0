// SPDX-License-Identifier: Apache-2.0
// Planted bug: a rule of answers that wait for their records is broken, and the scene detects it.
#include <gtest/gtest.h>

#include "engine/planted_engine_bugs.hpp"
#include "tests/durability/durable_scheduler.hpp"

namespace espalier::offload {
namespace {

class WaitingAnswerRules : public ::testing::TestWithParam<Bug> {};

TEST_P(WaitingAnswerRules, ItIsNoticedThatOneIsBroken) {
  const base::Planted planted(GetParam());
  const std::string wrong = what_is_wrong_with_waiting();
  EXPECT_NE(wrong, "") << "the bug was not noticed";
  RecordProperty("rejected_because", wrong);
}

TEST(WaitingAnswerRulesKept, TheScenePassesWithoutABug) {
  EXPECT_EQ(what_is_wrong_with_waiting(), "");
}

INSTANTIATE_TEST_SUITE_P(Each, WaitingAnswerRules,
                         ::testing::Values(Bug::answer_before_release,
                                           Bug::waiting_answers_last_first,
                                           Bug::sleeps_without_listening));

}  // namespace
}  // namespace espalier::offload
