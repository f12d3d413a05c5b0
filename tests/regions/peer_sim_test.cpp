// SPDX-License-Identifier: Apache-2.0
// Nodes that post to each other and call each other, in simulated worlds: messages are delayed,
// lost, duplicated and reordered, links are cut, nodes crash. ESPALIER_SEEDS sets how many seeds.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include <string>

#include "base/random.hpp"
#include "base/testing/seeds.hpp"
#include "tests/support/peer_world.hpp"

namespace espalier::test {
namespace {

void report_peers(const base::Seeds& seeds, const PeerReached& reached) {
  seeds.report("answers", reached.answers);
  seeds.report("posts that were done", reached.done);
  seeds.report("refused", reached.refused);
  seeds.report("of which nobody knows", reached.unknown);
  seeds.report("of these, that took effect", reached.unknown_done);
  seeds.report("never sent", reached.not_sent);
  seeds.report("of processes or clients that were gone", reached.never_told);
  seeds.report("calls that were answered", reached.calls);
  seeds.report("calls of two hops", reached.far_calls);
  seeds.report("calls that were not", reached.calls_unknown);
  seeds.report("of these, that were given up", reached.given_up);
  seeds.report("of these, that were cancelled", reached.cancelled);
  seeds.report("sessions after the first", reached.sessions);
  seeds.report("other keys", reached.other_keys);
  seeds.report("crashes", reached.crashes);
}

/// Stops at the first seed in which something is wrong.
class PeerSim : public ::testing::Test {
 protected:
  void run(
      const PeerWorldOptions& options, std::uint64_t usually,
      const std::function<bool(const PeerReached&)>& all_happened = [](const auto&) {
        return true;
      }) {
    const std::uint64_t first = base::seed_from_environment(1);
    base::Seeds seeds(usually);
    for (; seeds.more(all_happened(reached_)); seeds.done()) {
      const std::uint64_t seed = first + seeds.ended();
      ASSERT_EQ(run_peer_world(seed, options, reached_), "") << "seed " << seed;
    }
    report_peers(seeds, reached_);
  }

  PeerReached reached_;
};

TEST_F(PeerSim, WhatANodeIsToldOfItsPostsIsTrue) {
  run({}, 60, [](const PeerReached& of) {
    const auto all = {of.done,       of.refused,    of.unknown,       of.unknown_done, of.not_sent,
                      of.never_told, of.far_calls,  of.calls_unknown, of.given_up,     of.cancelled,
                      of.sessions,   of.other_keys, of.crashes,       of.cuts,         of.pauses,
                      of.drops,      of.refusals,   of.gone_clients};
    return std::ranges::all_of(all, [](std::uint64_t times) { return times != 0; });
  });
  EXPECT_GT(reached_.done, 0u);
  EXPECT_GT(reached_.refused, 0u);
  EXPECT_GT(reached_.unknown, 0u);
  EXPECT_GT(reached_.unknown_done, 0u);
  EXPECT_GT(reached_.not_sent, 0u);
  EXPECT_GT(reached_.never_told, 0u);
  EXPECT_GT(reached_.far_calls, 0u);
  EXPECT_GT(reached_.calls_unknown, 0u);
  EXPECT_GT(reached_.given_up, 0u);
  EXPECT_GT(reached_.cancelled, 0u);
  EXPECT_GT(reached_.sessions, 0u);
  EXPECT_GT(reached_.other_keys, 0u);
  EXPECT_GT(reached_.crashes, 0u);
  EXPECT_GT(reached_.cuts, 0u);
  EXPECT_GT(reached_.pauses, 0u);
  EXPECT_GT(reached_.drops, 0u);
  EXPECT_GT(reached_.refusals, 0u);
  EXPECT_GT(reached_.gone_clients, 0u);
}

TEST_F(PeerSim, AndWhereRingsAreSent) { run({.nodes = 2, .way = wire::LinkWay::send}, 20); }

// More than links have room for.
TEST_F(PeerSim, AndWherePostsAreMany) {
  run({.window = 40, .posts = offload::PostsOfRequest::kMost - 4}, 20);
}

// More calls than a peer's limit in flight, and than it has places for.
TEST_F(PeerSim, AndWhereAllCallEachOther) {
  run({.nodes = 4, .requests = 150, .window = 150, .calls = 0.9}, 10);
}

TEST_F(PeerSim, AndWhereOnlyTheFabricLoses) {
  run({.crashes = false,
       .cuts = false,
       .pauses = false,
       .drops = false,
       .refusals = false,
       .gone_clients = false},
      10);
}

}  // namespace
}  // namespace espalier::test
