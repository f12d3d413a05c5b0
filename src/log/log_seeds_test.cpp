// SPDX-License-Identifier: Apache-2.0
// Worlds in which the disk does what it may, each from a seed (testing/log_world.hpp).
#include <gtest/gtest.h>

#include <cstdio>

#include "base/random.hpp"
#include "log/format.hpp"
#include "log/testing/log_world.hpp"
#include "log/testing/world_count.hpp"

namespace espalier::log {
namespace {

WorldResult run_worlds(std::uint64_t otherwise, std::uint64_t usually, const WorldTerms& terms) {
  const std::uint64_t seed = base::seed_from_environment(otherwise);
  WorldResult all;
  const std::uint64_t count = world_count(usually);
  for (std::uint64_t i = 0; i < count; ++i) {
    const WorldResult one = run_world(seed + i, terms);
    EXPECT_EQ(one.wrong, "") << "ESPALIER_SEED=" << seed + i;
    if (!one.wrong.empty()) break;
    all.records += one.records;
    all.kills += one.kills;
    all.power_losses += one.power_losses;
    all.cuts += one.cuts;
    all.recovery_crashes += one.recovery_crashes;
    all.segments_removed += one.segments_removed;
    all.failures += one.failures;
    all.damages += one.damages;
  }
  std::fprintf(stderr, "%llu kills, %llu losses of power, ",
               static_cast<unsigned long long>(all.kills),
               static_cast<unsigned long long>(all.power_losses));
  std::fprintf(stderr, "%llu records, %llu cuts, %llu crashes in recovery, %llu segments removed, ",
               static_cast<unsigned long long>(all.records),
               static_cast<unsigned long long>(all.cuts),
               static_cast<unsigned long long>(all.recovery_crashes),
               static_cast<unsigned long long>(all.segments_removed));
  std::fprintf(stderr, "%llu failures, %llu damages\n",
               static_cast<unsigned long long>(all.failures),
               static_cast<unsigned long long>(all.damages));
  return all;
}

TEST(LogSeeds, NothingAcknowledgedIsLostInACrash) {
  const WorldResult all = run_worlds(1, 200, {});
  EXPECT_GT(all.cuts, 0u);
  EXPECT_GT(all.recovery_crashes, 0u);
  EXPECT_GT(all.segments_removed, 0u);
}

TEST(LogSeeds, NorWhereOldBlocksWouldFollowNewOnes) {
  WorldTerms terms;
  terms.alike = true;
  EXPECT_GT(run_worlds(6001, 100, terms).cuts, 0u);
}

TEST(LogSeeds, NorWhenTheProcessAloneIsKilled) {
  WorldTerms terms;
  terms.power = false;
  const WorldResult all = run_worlds(1001, 60, terms);
  EXPECT_GT(all.kills, 0u);
  EXPECT_EQ(all.power_losses, 0u);
}

TEST(LogSeeds, NorWhenWritesFailOrAreShort) {
  WorldTerms terms;
  terms.faults = {.fails = 0.05, .shortens = 0.1, .folder_fails = 0.05};
  EXPECT_GT(run_worlds(2001, 150, terms).failures, 0u);
}

TEST(LogSeeds, NorWhenAFailedFlushLeavesItsBlocksInThePageCache) {
  WorldTerms terms;
  terms.faults = {.fails = 0.1, .cached = true};
  EXPECT_GT(run_worlds(7001, 150, terms).failures, 0u);
}

TEST(LogSeeds, NorWhenTheDiskIsFull) {
  WorldTerms terms;
  terms.faults = {.bytes_max = 24 * kUnitBytes};
  EXPECT_GT(run_worlds(3001, 100, terms).failures, 0u);
}

TEST(LogSeeds, BitsThatChangeAreNoticed) {
  WorldTerms terms;
  terms.flips = true;
  EXPECT_GT(run_worlds(4001, 150, terms).damages, 0u);
}

TEST(LogSeeds, WhatADiskThatLiesKeepsIsInOrder) {
  WorldTerms terms;
  terms.faults = {.lies = 0.2};
  EXPECT_GT(run_worlds(5001, 150, terms).damages, 0u);
}

}  // namespace
}  // namespace espalier::log
