// SPDX-License-Identifier: Apache-2.0
// Nodes that post to each other and call each other, in simulated worlds: messages late, lost,
// doubled and out of order, links that are cut, nodes that crash. ESPALIER_SEEDS says how many.
#include <gtest/gtest.h>

#include <string>

#include "base/random.hpp"
#include "base/testing/seeds.hpp"
#include "tests/support/peer_world.hpp"

namespace espalier::test {
namespace {

PeerReached run_peer_seeds(const PeerWorldOptions& options, std::uint64_t usually, bool& enough) {
  const std::uint64_t first = base::seed_from_environment(1);
  base::Seeds seeds(usually);
  PeerReached reached;
  for (std::uint64_t i = 0; i < seeds.count(); ++i) {
    const std::string wrong = run_peer_world(first + i, options, reached);
    EXPECT_EQ(wrong, "") << "seed " << first + i;
    if (!wrong.empty()) break;
    seeds.done();
  }
  seeds.report("answers", reached.answers);
  seeds.report("posts that were done", reached.done);
  seeds.report("refused", reached.refused);
  seeds.report("of which nobody knows", reached.unknown);
  seeds.report("of these, that took effect", reached.unknown_done);
  seeds.report("never sent", reached.not_sent);
  seeds.report("of processes that were gone", reached.never_told);
  seeds.report("calls that were answered", reached.calls);
  seeds.report("calls of two hops", reached.far_calls);
  seeds.report("calls that were not", reached.calls_unknown);
  seeds.report("sessions after the first", reached.sessions);
  seeds.report("other keys", reached.other_keys);
  seeds.report("crashes", reached.crashes);
  enough = seeds.enough() && !::testing::Test::HasFailure();
  return reached;
}

TEST(PeerSim, WhatANodeIsToldOfItsPostsIsTrue) {
  bool enough = false;
  const PeerReached reached = run_peer_seeds({}, 40, enough);
  if (!enough) return;
  EXPECT_GT(reached.done, 0u);
}

}  // namespace
}  // namespace espalier::test
