// SPDX-License-Identifier: Apache-2.0
// The rules against hostile peers (src/channel/rings/tests/testing/hostile_checks.hpp): each is
// broken in turn, and its check detects it.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "channel/rings/tests/testing/hostile_checks.hpp"
#include "fabric/planted_fabric_bugs.hpp"

namespace espalier::client {
namespace {

struct Planted {
  fabric::Bug bug;
  std::function<std::string()> check;
};

/// The error of the first breach in a list that goes wrong.
std::string first_wrong_breach(const std::vector<Breach>& breaches) {
  for (const Breach& breach : breaches) {
    if (const std::string wrong = check_breach(breach); !wrong.empty()) {
      return breach.name + ": " + wrong;
    }
  }
  return {};
}

std::string check_notes() { return first_wrong_breach(breaches_of_notes()); }

class HostileRules : public ::testing::TestWithParam<Planted> {};

TEST_P(HostileRules, TheCheckNoticesThatOneIsBroken) {
  ASSERT_EQ(GetParam().check(), "");
  const base::Planted planted(GetParam().bug);
  const std::string wrong = GetParam().check();
  EXPECT_NE(wrong, "") << "the bug was not noticed";
  RecordProperty("rejected_because", wrong);
}

using fabric::Bug;
INSTANTIATE_TEST_SUITE_P(
    Each, HostileRules,
    ::testing::Values(Planted{Bug::note_of_any_ring, check_notes},
                      Planted{Bug::note_by_any_verb, check_notes},
                      Planted{Bug::note_of_any_slot, check_notes},
                      Planted{Bug::credit_of_any_length, check_notes},
                      Planted{Bug::session_of_any_rings, [] { return check_stolen_names(); }},
                      Planted{Bug::one_domain_for_all, [] { return check_memory_of_others(); }},
                      Planted{Bug::refused_not_closed, [] { return check_receives_for_others(); }},
                      Planted{Bug::posts_taken_by_anybody, [] { return check_posts_for_others(); }},
                      Planted{Bug::receives_held_by_all,
                              [] { return check_unfinished_messages(); }}));

}  // namespace
}  // namespace espalier::client
