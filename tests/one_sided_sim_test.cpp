// SPDX-License-Identifier: Apache-2.0
// Clients that walk a map by one-sided READs in a simulated fabric: READs torn at cache lines,
// delayed, duplicated and reordered, while the host writes, reuses memory immediately, pauses, and
// lets leases expire.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tests/support/one_sided_seeds.hpp"

namespace espalier::test {
namespace {

constexpr SeedReport kReaderReports[] = {
    {"answers", &OneSidedCounts::answers},
    {"walks that began again", &OneSidedCounts::restarts},
    {"leases lost", &OneSidedCounts::leases_lost},
    {"READs redirected", &OneSidedCounts::reads_redirected},
    {"READs sent where there is no node", &OneSidedCounts::reads_at_nothing},
    {"entries of tables that followed", &OneSidedCounts::entries_followed},
    {"pauses of controllers", &OneSidedCounts::controller_pauses},
};
constexpr std::size_t kOfAll = 3;  // what is behind these is of READs by key

void run_seeds(
    const OneSidedOptions& options, std::uint64_t usually, OneSidedCounts& counts,
    const SeldomHappened& all_happened = [](const auto&) { return true; }) {
  const std::span<const SeedReport> reports(kReaderReports);
  run_one_sided_seeds(options, usually, counts, options.by_key ? reports : reports.first(kOfAll),
                      all_happened);
}

TEST(OneSidedSim, AnswersAreRightInGoodWeather) {
  OneSidedCounts counts;
  OneSidedOptions options;
  options.pauses = false;
  run_seeds(options, 20, counts);
  EXPECT_EQ(counts.refused, 0u);
  EXPECT_GT(counts.long_values, 0u);
}

TEST(OneSidedSim, AnswersAreRightInBadWeather) {
  OneSidedCounts counts;
  OneSidedOptions options;
  options.faults = fabric::sim::Faults::harsh();
  run_seeds(options, 40, counts);
  EXPECT_GT(counts.answers, counts.refused);
  EXPECT_GT(counts.torn_reads, 0u);
  EXPECT_GT(counts.reads_reordered, 0u);
  EXPECT_GT(counts.restarts, 0u);
  EXPECT_GT(counts.leases_lost, 0u);
  EXPECT_GT(counts.long_values, 0u);
}

TEST(OneSidedSim, AnswersAreRightWhereReadsKeepTheirOrder) {
  OneSidedCounts counts;
  OneSidedOptions options;
  options.faults = fabric::sim::Faults::harsh();
  options.faults.reads_in_order = true;
  run_seeds(options, 20, counts);
  EXPECT_EQ(counts.reads_reordered, 0u);
}

TEST(OneSidedSim, LargeNodes) {
  OneSidedCounts counts;
  OneSidedOptions options;
  options.map = {.node_bytes = 8192, .log_bytes = 512};
  options.keys = 600;
  options.faults = fabric::sim::Faults::harsh();
  run_seeds(options, 10, counts);
}

// With keys of a common prefix more than two groups of an interior node tie, and the child may be
// in any of them. From the root, without faults, no walk needs to restart.
TEST(OneSidedSim, KeysThatBeginAlikeAreFoundAtOnce) {
  OneSidedCounts counts;
  OneSidedOptions options;
  options.map = {.node_bytes = 4096, .log_bytes = 512};
  options.keys = 6000;
  options.keys_begin_with = "tenant/orders/id/";
  options.reads = 150;
  options.pauses = false;
  options.hints = false;
  run_seeds(options, 4, counts);
  EXPECT_EQ(counts.refused, 0u);
  EXPECT_EQ(counts.restarts, 0u);
}

// What clients remember of nodes leads them down, and the host changes these all the time.
OneSidedOptions remembering() {
  OneSidedOptions options;
  options.cache_bytes = 16 << 10;  // less than all nodes
  options.hints = false;
  options.pauses = false;
  return options;
}

TEST(OneSidedSim, CachesOnlyLeadTheWay) {
  OneSidedCounts counts;
  run_seeds(remembering(), 20, counts);
  EXPECT_EQ(counts.refused, 0u);
  EXPECT_GT(counts.cache_hits, counts.cache_descents / 2);
}

TEST(OneSidedSim, CachesOnlyLeadTheWayWhereReadsKeepTheirOrder) {
  for (const bool leaf_heads : {false, true}) {
    OneSidedCounts counts;
    OneSidedOptions options = remembering();
    options.leaf_heads = leaf_heads;
    options.faults = fabric::sim::Faults::harsh();
    options.faults.reads_in_order = true;
    options.pauses = true;
    run_seeds(options, 20, counts);
    EXPECT_GT(counts.torn_reads, 0u);
    EXPECT_GT(counts.leases_lost, 0u);
    EXPECT_GT(counts.cache_hits, counts.cache_descents / 2);
  }
}

TEST(OneSidedSim, CachesOnlyLeadTheWayInBadWeather) {
  OneSidedCounts counts;
  OneSidedOptions options = remembering();
  options.faults = fabric::sim::Faults::harsh();
  options.pauses = true;
  options.hints = true;
  options.drops = 4;
  run_seeds(options, 20, counts, [](const OneSidedCounts& of) { return of.headers_reused != 0; });
  EXPECT_GT(counts.reads_reordered, 0u);
  EXPECT_GT(counts.headers_reused, 0u);
}

// Gets go in groups, whose READs come torn and late while the host changes what they are of.
TEST(OneSidedSim, GetsOfAGroupAnswerAsOthersDo) {
  for (const bool harsh : {false, true}) {
    OneSidedCounts counts;
    OneSidedOptions options = remembering();
    options.cache_bytes = 256 << 10;
    options.groups_gets = true;
    options.follows_feed = true;
    if (harsh) options.faults = fabric::sim::Faults::harsh();
    options.faults.reads_in_order = true;
    options.pauses = harsh;
    options.drops = harsh ? 3 : 0;
    run_seeds(options, 20, counts);
    EXPECT_GT(counts.grouped_gets, counts.answers / 100);
    options.map = {.node_bytes = 512, .log_bytes = 64};  // several levels
    run_seeds(options, 20, counts);
  }
}

// Fences come with leaves, and separators lead: what groups make of them is right while both
// change.
TEST(OneSidedSim, GetsOfAGroupAnswerAmongKeysThatBeginAlike) {
  OneSidedCounts counts;
  OneSidedOptions options = remembering();
  options.cache_bytes = 256 << 10;
  options.groups_gets = true;
  options.follows_feed = true;
  options.keys_begin_with = "tenant/orders/id/";
  options.faults.reads_in_order = true;
  options.map = {.node_bytes = 1024, .log_bytes = 128};
  options.keys = 200;
  run_seeds(options, 10, counts);
  EXPECT_GT(counts.grouped_gets, counts.answers / 200);
  options.faults = fabric::sim::Faults::harsh();
  options.faults.reads_in_order = true;
  run_seeds(options, 10, counts);
}

// The memory of a dead process is there, and groups of gets know it for a short time only.
TEST(OneSidedSim, GroupsOfGetsSurviveTheDeathOfANode) {
  OneSidedCounts counts;
  OneSidedOptions options = remembering();
  options.cache_bytes = 256 << 10;
  options.groups_gets = true;
  options.faults = fabric::sim::Faults::harsh();
  options.faults.reads_in_order = true;
  options.death = Death::process;
  options.deaths = 3;
  run_seeds(options, 10, counts, [](const OneSidedCounts& of) { return of.grouped_gets != 0; });
  EXPECT_GT(counts.deaths, 0u);
  EXPECT_GT(counts.grouped_gets, 0u);
}

// Leaves come ahead of scans, torn, late and in any order, while the host changes them; entries
// that lead to them become others.
TEST(OneSidedSim, LeavesThatComeAheadAnswerForThemselves) {
  for (const bool in_order : {false, true}) {
    for (const bool forged : {false, true}) {
      OneSidedCounts counts;
      OneSidedOptions options = remembering();
      options.cache_bytes = 64 << 10;
      options.map = {.node_bytes = 512, .log_bytes = 64};
      options.keys = 200;
      options.reads = 60;
      options.only_scans = true;
      options.forged_cache = forged;
      options.faults = fabric::sim::Faults::harsh();
      options.faults.reads_in_order = in_order;
      options.pauses = true;
      options.drops = 2;
      run_seeds(options, 6, counts);
      EXPECT_GT(counts.leaves_ahead, forged ? 0u : 50u);  // of one seed too
      EXPECT_GT(counts.leases_lost, 0u);
    }
  }
}

// The feed comes torn and late, is overrun, is off for a moment, and is of maps that are dropped.
TEST(OneSidedSim, TheFeedOnlyKeepsCachesFresh) {
  for (const bool in_order : {false, true}) {
    OneSidedCounts counts;
    OneSidedOptions options = remembering();
    options.follows_feed = true;
    options.map = {.node_bytes = 512, .log_bytes = 64};
    options.faults = fabric::sim::Faults::harsh();
    options.faults.reads_in_order = in_order;
    options.pauses = true;
    options.drops = 3;
    run_seeds(options, 20, counts);
    EXPECT_GT(counts.torn_reads, 0u);
    EXPECT_GT(counts.feed_replaced, 0u);
    EXPECT_GT(counts.feed_changes, counts.feed_replaced);
    EXPECT_GT(counts.feed_behind, counts.maps);
    EXPECT_GT(counts.feed_overruns, 0u);
  }
}

// Reports of moves that never happened cost time.
TEST(OneSidedSim, NoAnswerIsWrongWhateverTheFeedTells) {
  for (const bool in_order : {false, true}) {
    OneSidedCounts counts;
    OneSidedOptions options = remembering();
    options.follows_feed = true;
    options.lying_feed = true;
    options.map = {.node_bytes = 512, .log_bytes = 64};
    options.faults.reads_in_order = in_order;
    options.drops = 1;
    run_seeds(options, 20, counts);
    EXPECT_GT(counts.feed_replaced, counts.answers / 10);
    EXPECT_GT(counts.answers, 10 * counts.refused);
  }
}

// Entries become those of other nodes, of earlier generations, of other maps, and no nodes at all.
TEST(OneSidedSim, NoAnswerIsWrongWhateverACacheHolds) {
  for (const bool in_order : {false, true}) {
    OneSidedCounts counts;
    OneSidedOptions options = remembering();
    options.forged_cache = true;
    options.drops = 3;
    options.faults = fabric::sim::Faults::harsh();
    options.faults.reads_in_order = in_order;
    options.groups_gets = in_order;
    run_seeds(options, 20, counts);
    options.map = {.node_bytes = 2048, .log_bytes = 256};
    options.keys = 600;
    options.cache_bytes = 256 << 10;
    options.drops = 0;
    run_seeds(options, 10, counts);
    EXPECT_GT(counts.answers, counts.refused);
  }
}

// READs carry keys, and a switch on the path has tables that are right, old, missing, or wrong; its
// controller loses leases. (`sim` has no packets: the switch looks up the READs themselves.)
OneSidedOptions by_key() {
  OneSidedOptions options;
  options.by_key = true;
  options.hints = false;
  options.keys = 200;
  return options;
}

TEST(OneSidedSim, TablesInASwitchOnlyLeadTheWay) {
  for (const bool in_order : {false, true}) {
    OneSidedCounts counts;
    OneSidedOptions options = by_key();
    options.pauses = false;
    options.faults.reads_in_order = in_order;
    run_seeds(options, 10, counts);
    EXPECT_EQ(counts.refused, 0u);
    EXPECT_GT(counts.reads_redirected, counts.answers / 8);
    EXPECT_GT(counts.reads_resolved, 0u);
    EXPECT_GT(counts.reads_at_nothing, 0u);
    EXPECT_GT(counts.redirect_keys_lost, 0u);
    EXPECT_GT(counts.generations_begun, 0u);
    EXPECT_GT(counts.controller_pauses, 0u);
    EXPECT_GT(counts.entries_followed, 0u);
    EXPECT_EQ(counts.entries_astray, 0u);
  }
}

TEST(OneSidedSim, TablesInASwitchOnlyLeadTheWayInBadWeather) {
  for (const bool in_order : {false, true}) {
    OneSidedCounts counts;
    OneSidedOptions options = by_key();
    options.faults = fabric::sim::Faults::harsh();
    options.faults.reads_in_order = in_order;
    options.drops = 3;
    run_seeds(options, 10, counts);
    options.map = {.node_bytes = 2048, .log_bytes = 256};  // larger than a packet
    options.hints = true;
    options.cache_bytes = 64 << 10;
    run_seeds(options, 5, counts);
    EXPECT_GT(counts.answers, counts.refused);
    EXPECT_GT(counts.leases_lost, 0u);
    EXPECT_GT(counts.reads_redirected, 0u);
    EXPECT_GT(counts.controller_pauses, 0u);
    EXPECT_GT(counts.entries_followed, 0u);
    EXPECT_EQ(counts.entries_astray, 0u);
  }
}

// A fifth of all messages is lost, so READs pass repeatedly through tables that change.
TEST(OneSidedSim, TablesInASwitchOnlyLeadTheWayWhereAFifthIsLost) {
  OneSidedCounts counts;
  OneSidedOptions options = by_key();
  options.faults = fabric::sim::Faults::harsh();
  options.faults.loss = 0.2;
  run_seeds(options, 5, counts);
  EXPECT_GT(counts.answers, counts.refused);
  EXPECT_GT(counts.messages_lost, counts.answers / 10);
  EXPECT_GT(counts.reads_redirected, 0u);
  EXPECT_GT(counts.controller_pauses, 0u);
  EXPECT_GT(counts.entries_followed, 0u);
  EXPECT_EQ(counts.entries_astray, 0u);
}

TEST(OneSidedSim, TablesOfANodeThatDiedLeadNowhere) {
  OneSidedCounts counts;
  OneSidedOptions options = by_key();
  options.faults = fabric::sim::Faults::harsh();
  options.death = Death::node;
  options.deaths = 2;
  run_seeds(options, 10, counts);
  EXPECT_GT(counts.deaths, 0u);
  EXPECT_GT(counts.answers_of_successors, 0u);
}

// A host that silently forgets leases: generations reveal reuse.
TEST(OneSidedSim, NoAnswerIsWrongWhereLeasesKeepNothing) {
  OneSidedCounts counts;
  OneSidedOptions options;
  options.map = {.node_bytes = 8192, .log_bytes = 512};
  options.keys = 6;
  options.one_in_long = 1;
  options.faults.tear = 1;
  options.faults.tear_ns = {200, 30'000};
  options.reads = 100;
  options.keeps_leases = false;
  run_seeds(options, 20, counts);
  EXPECT_GT(counts.met_changes, 0u);
  EXPECT_GT(counts.answers, counts.refused);
}

// Maps are dropped one by one, and each new one takes the memory of earlier ones. A reader of a
// dropped map learns that it is gone, and no walk is answered by another map.
TEST(OneSidedSim, DroppedMapsMakeRoomForOthers) {
  OneSidedCounts counts;
  OneSidedOptions options;
  options.drops = 4;
  run_seeds(options, 10, counts);
  EXPECT_GT(counts.refused, 0u);
  EXPECT_GT(counts.headers_reused, 0u);
}

TEST(OneSidedSim, DroppedMapsMakeRoomForOthersInBadWeather) {
  OneSidedCounts counts;
  OneSidedOptions options;
  options.drops = 6;
  options.faults = fabric::sim::Faults::harsh();
  run_seeds(options, 10, counts);
  EXPECT_GT(counts.refused, 0u);
  EXPECT_GT(counts.leases_lost, 0u);
  EXPECT_GT(counts.headers_reused, 0u);
}

OneSidedOptions dying(Death death) {
  OneSidedOptions options;
  options.death = death;
  options.deaths = 3;
  options.faults = fabric::sim::Faults::harsh();
  return options;
}

// A node dies under walks, and another one comes at its address, with other contents.
TEST(OneSidedSim, ANodeThatDiedHasASuccessor) {
  OneSidedCounts counts;
  run_seeds(dying(Death::node), 20, counts);
  EXPECT_GT(counts.deaths, 0u);
  EXPECT_GT(counts.answers_of_successors, 0u);
}

// The process is dead, but its memory still answers READs: for believed_for_ns such answers are
// given, and no longer.
TEST(OneSidedSim, TheMemoryOfADeadProcessIsBelievedForAShortTime) {
  OneSidedCounts counts;
  run_seeds(dying(Death::process), 20, counts);
  EXPECT_GT(counts.answers_of_the_dead, 0u);
  EXPECT_GT(counts.answers_of_successors, 0u);
}

TEST(OneSidedSim, ClientsOfANodeThatStaysDeadComeToAnEnd) {
  for (const Death death : {Death::node, Death::process}) {
    OneSidedCounts counts;
    OneSidedOptions options = dying(death);
    options.deaths = 1;
    options.comes_back = false;
    options.reads = 5000;
    run_seeds(options, 5, counts);
    EXPECT_GT(counts.deaths, 0u);
    EXPECT_EQ(counts.answers_of_successors, 0u);
  }
}

}  // namespace
}  // namespace espalier::test
