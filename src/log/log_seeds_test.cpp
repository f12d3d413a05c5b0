// SPDX-License-Identifier: Apache-2.0
// Worlds in which the disk does what it may, each from a seed (testing/log_world.hpp).
#include <gtest/gtest.h>

#include <algorithm>

#include <cstdint>
#include <initializer_list>
#include <utility>

#include "base/random.hpp"
#include "base/testing/seeds.hpp"
#include "log/format.hpp"
#include "log/testing/log_world.hpp"

namespace espalier::log {
namespace {

using Count = std::uint64_t WorldResult::*;

constexpr std::pair<const char*, Count> kCounts[] = {
    {"records", &WorldResult::records},
    {"kills", &WorldResult::kills},
    {"losses of power", &WorldResult::power_losses},
    {"cuts", &WorldResult::cuts},
    {"crashes in recovery", &WorldResult::recovery_crashes},
    {"segments removed", &WorldResult::segments_removed},
    {"failures", &WorldResult::failures},
    {"writes that overtook another", &WorldResult::overtaken},
    {"crashes among several writes", &WorldResult::torn},
    {"damages", &WorldResult::damages}};

/// Runs worlds, in which all of these must have happened.
void run_worlds(std::uint64_t otherwise, std::uint64_t usually, const WorldTerms& terms,
                std::initializer_list<Count> expected) {
  const std::uint64_t seed = base::seed_from_environment(otherwise);
  base::Seeds seeds(usually);
  WorldResult all;
  const auto all_happened = [&] {
    return std::ranges::all_of(expected, [&](Count count) { return all.*count != 0; });
  };
  for (; seeds.more(all_happened()); seeds.done()) {
    const WorldResult one = run_world(seed + seeds.ended(), terms);
    ASSERT_EQ(one.wrong, "") << "ESPALIER_SEED=" << seed + seeds.ended();
    for (const auto& [name, count] : kCounts) all.*count += one.*count;
  }
  for (const auto& [name, count] : kCounts) seeds.report(name, all.*count);
  for (const Count count : expected) EXPECT_GT(all.*count, 0u);
}

TEST(LogSeeds, NothingAcknowledgedIsLostInACrash) {
  run_worlds(1, 200, {},
             {&WorldResult::kills, &WorldResult::power_losses, &WorldResult::cuts,
              &WorldResult::recovery_crashes, &WorldResult::segments_removed});
}

TEST(LogSeeds, NorWhereOldBlocksWouldFollowNewOnes) {
  WorldTerms terms;
  terms.alike = true;
  terms.steps_max = 10;
  run_worlds(6001, 100, terms, {&WorldResult::cuts});
}

TEST(LogSeeds, NorWhenTheProcessAloneIsKilled) {
  WorldTerms terms;
  terms.power = false;
  run_worlds(1001, 60, terms, {&WorldResult::kills});
}

TEST(LogSeeds, NorWhenWritesFailOrAreShort) {
  WorldTerms terms;
  terms.faults = {.fails = 0.05, .shortens = 0.1, .folder_fails = 0.05};
  run_worlds(2001, 150, terms, {&WorldResult::failures});
}

TEST(LogSeeds, NorWhenAFailedFlushLeavesItsBlocksInThePageCache) {
  WorldTerms terms;
  terms.faults = {.fails = 0.1, .cached = true};
  run_worlds(7001, 150, terms, {&WorldResult::failures, &WorldResult::power_losses});
}

TEST(LogSeeds, NorWhenTheDiskIsFull) {
  WorldTerms terms;
  terms.faults = {.bytes_max = 24 * kUnitBytes};
  run_worlds(3001, 100, terms, {&WorldResult::failures});
}

TEST(LogSeeds, BitsThatChangeAreNoticed) {
  WorldTerms terms;
  terms.flips = true;
  run_worlds(4001, 150, terms, {&WorldResult::damages});
}

TEST(LogSeeds, WhatADiskThatLiesKeepsIsInOrder) {
  WorldTerms terms;
  terms.faults = {.lies = 0.2};
  run_worlds(5001, 150, terms, {&WorldResult::damages});
}

// Several writes are under way, and the disk takes them in any order.

TEST(LogSeeds, NothingIsLostWhereSeveralWritesAreUnderWay) {
  WorldTerms terms;
  terms.writes_max = 4;
  run_worlds(8001, 200, terms,
             {&WorldResult::kills, &WorldResult::power_losses, &WorldResult::cuts,
              &WorldResult::overtaken, &WorldResult::torn, &WorldResult::segments_removed});
}

TEST(LogSeeds, NorWhereOneOfSeveralFails) {
  WorldTerms terms;
  terms.writes_max = 4;
  terms.faults = {.fails = 0.05, .shortens = 0.1, .folder_fails = 0.05};
  run_worlds(9001, 150, terms, {&WorldResult::failures, &WorldResult::overtaken});
}

TEST(LogSeeds, NorWhereOneOfSeveralLiesOrABitChanges) {
  WorldTerms terms;
  terms.writes_max = 4;
  terms.flips = true;
  run_worlds(10'001, 150, terms, {&WorldResult::damages, &WorldResult::overtaken});
  terms.flips = false;
  terms.faults = {.lies = 0.2};
  run_worlds(11'001, 150, terms, {&WorldResult::damages, &WorldResult::overtaken});
}

}  // namespace
}  // namespace espalier::log
