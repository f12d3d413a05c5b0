// SPDX-License-Identifier: Apache-2.0
// Worlds with a store on a disk that crashes (store_world.hpp).
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "base/random.hpp"
#include "tests/durability/store_world.hpp"

namespace espalier::test {
namespace {

constexpr int kLives = 12;

TEST(StoreWorld, WhatWasAcknowledgedOrSeenIsThereAfterACrash) {
  base::Random seeds(base::seed_from_environment(17));
  for (int i = 0; i < 30 && !HasFailure(); ++i) {
    const std::uint64_t seed = seeds();
    SCOPED_TRACE("seed " + std::to_string(seed));
    StoreWorld world(seed);
    world.by_object = i % 3 == 1;
    world.makes_checkpoints = false;
    live_some_lives(world, kLives);
  }
}

TEST(StoreWorld, ItIsThereOutOfCheckpointsAndTheLogBehindThem) {
  base::Random seeds(base::seed_from_environment(23));
  std::uint64_t checkpoints = 0;
  std::uint64_t begun_with_one = 0;
  std::uint64_t crashed_in_one = 0;
  std::uint64_t segments_removed = 0;
  std::uint64_t renames = 0;
  for (int i = 0; i < 40 && !HasFailure(); ++i) {
    const std::uint64_t seed = seeds();
    SCOPED_TRACE("seed " + std::to_string(seed));
    StoreWorld world(seed);
    world.by_object = i % 3 == 1;
    live_some_lives(world, kLives);
    checkpoints += world.checkpoints;
    begun_with_one += world.begun_with_one;
    crashed_in_one += world.crashed_in_one;
    renames += world.renames;
    segments_removed += world.segments_removed;
  }
  RecordProperty("checkpoints", std::to_string(checkpoints));
  RecordProperty("segments_removed", std::to_string(segments_removed));
  // Each of them often enough that the world means something.
  EXPECT_GT(checkpoints, 20u);
  EXPECT_GT(begun_with_one, 50u);
  EXPECT_GT(crashed_in_one, 20u);
  EXPECT_GT(segments_removed, 20u);
  EXPECT_GT(renames, 100u);
}

TEST(StoreWorld, OfAnswersThatCameEarlyACrashLosesOnlyTheNewest) {
  base::Random seeds(base::seed_from_environment(29));
  std::uint64_t lost = 0;
  std::uint64_t waited = 0;
  std::uint64_t begun_with_one = 0;
  for (int i = 0; i < 40 && !HasFailure(); ++i) {
    const std::uint64_t seed = seeds();
    SCOPED_TRACE("seed " + std::to_string(seed));
    StoreWorld world(seed);
    world.async = true;
    world.by_object = i % 3 == 1;
    world.makes_checkpoints = i % 4 != 0;
    live_some_lives(world, kLives);
    lost += world.lost;
    waited += world.waited;
    begun_with_one += world.begun_with_one;
  }
  RecordProperty("lost", std::to_string(lost));
  RecordProperty("waited", std::to_string(waited));
  EXPECT_GT(lost, 50u);
  EXPECT_GT(waited, 5u);
  EXPECT_GT(begun_with_one, 20u);
}

}  // namespace
}  // namespace espalier::test
