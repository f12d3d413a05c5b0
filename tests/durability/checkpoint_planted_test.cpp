// SPDX-License-Identifier: Apache-2.0
// The worlds detect checkpoints that break a rule (docs/design/checkpoints.md).
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "engine/planted_engine_bugs.hpp"
#include "log/planted_log_bugs.hpp"
#include "tests/durability/store_world.hpp"

namespace espalier::test {
namespace {

constexpr std::uint64_t kWorlds = 100;

struct WorldsOf {
  bool appends = true;
  bool async = false;
};

/// What is wrong in the first of the worlds in which something is, and has this in its words;
/// empty: nothing.
std::string first_wrong(const std::string& like = {}, const WorldsOf& worlds = {}) {
  for (std::uint64_t seed = 1; seed <= kWorlds; ++seed) {
    testing::TestPartResultArray wrong;
    {
      const testing::ScopedFakeTestPartResultReporter intercept(
          testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &wrong);
      StoreWorld world(seed);
      world.appends = worlds.appends;
      world.async = worlds.async;
      for (int life = 0; life < 12 && wrong.size() == 0; ++life) live_some_lives(world, 1);
    }
    for (int i = 0; i < wrong.size(); ++i) {
      const std::string words = wrong.GetTestPartResult(i).message();
      if (words.find(like) != std::string::npos) return words;
    }
  }
  return {};
}

template <class Bug>
void expect_noticed(Bug bug, const std::string& like = {}, const WorldsOf& worlds = {}) {
  const base::Planted planted(bug);
  const std::string wrong = first_wrong(like, worlds);
  EXPECT_NE(wrong, "");
  ::testing::Test::RecordProperty("wrong", wrong);
}

TEST(CheckpointPlanted, NothingIsWrongWithoutABug) {
  EXPECT_EQ(first_wrong(), "");
  EXPECT_EQ(first_wrong({}, {.async = true}), "");
}

TEST(CheckpointPlanted, VersionsOfAnEarlierRunThatComeAgainAreNoticed) {
  expect_noticed(offload::Bug::versions_of_earlier_runs, "a version would come again",
                 {.async = true});
}

TEST(CheckpointPlanted, ACopyThatForgetsSlotsOfAnEncryptedTableIsNoticed) {
  expect_noticed(offload::Bug::copy_without_slots, "told twice");
}

TEST(CheckpointPlanted, RemovingSegmentsBeforeTheCheckpointIsThereIsNoticed) {
  expect_noticed(log::Bug::log_removed_early);
}

TEST(CheckpointPlanted, BelievingOneBeforeTheLogIsDurableUpToItsEndIsNoticed) {
  expect_noticed(log::Bug::checkpoint_named_early);
}

TEST(CheckpointPlanted, AnErasedKeyThatComesBackIsNoticed) {
  expect_noticed(log::Bug::overlap_skipped, " not '' ", {.appends = false});
}

TEST(CheckpointPlanted, CopyingBeforeWhatIsRecordedIsVisibleIsNoticed) {
  expect_noticed(offload::Bug::copy_waits_for_nothing);
}

TEST(CheckpointPlanted, ATableThatIsDroppedWhileItIsCopiedIsNoticed) {
  expect_noticed(offload::Bug::copy_of_dropped_object_open, "a record cannot be applied");
}

}  // namespace
}  // namespace espalier::test
