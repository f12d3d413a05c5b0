// SPDX-License-Identifier: Apache-2.0
// Cuts over several nodes are of one moment, whatever is written between any two of their steps.
#include "shards/cut_steps.hpp"

#include <gtest/gtest.h>

#include "shards/testing/cut_world.hpp"

namespace espalier::client {
namespace {

TEST(CutSteps, AreOfOneMoment) {
  const std::uint64_t seed = base::seed_from_environment(1);
  CutReached reached;
  EXPECT_EQ(wrong_cuts(seed, 300, reached), "");
  // All ways were gone.
  EXPECT_GT(reached.cuts, 4'000u);
  EXPECT_GT(reached.held, 500u);
  EXPECT_GT(reached.broken, 50u);
}

TEST(CutSteps, TakeNoHoldsWhereNobodyWrites) {
  CutReached reached;
  CutWorld world(base::seed_from_environment(2), 3);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(world.cut(0, reached), "");
  EXPECT_EQ(reached.cuts, 100u);
  EXPECT_EQ(reached.held, 0u);
}

TEST(CutSteps, NeedNoHoldsOnceWritesPause) {
  CutReached reached;
  CutWorld world(base::seed_from_environment(3), 2);
  world.grant_none();
  // Writes at every step, so that nothing is had without a hold, until the third try for one.
  EXPECT_EQ(world.cut(1, reached, /*pause_after=*/3), "");
  EXPECT_EQ(reached.cuts, 1u);
  EXPECT_EQ(reached.held, 0u);
}

/// Fails in one way.
class Failing final : public CutPart {
 public:
  explicit Failing(bool lost) : lost_(lost) {}
  void close() override {}
  bool begin_open() override { return !lost_; }
  Result<void> finish_open() override { return fail(Code::not_found); }
  [[nodiscard]] Version held_version() const override { return 0; }
  bool begin_collect() override { return false; }
  Result<Version> finish_collect() override { return fail(Code::corrupt); }
  bool begin_hold() override { return false; }
  Result<void> finish_hold() override { return fail(Code::corrupt); }
  bool begin_confirm() override { return false; }
  Result<std::optional<Version>> finish_confirm() override { return fail(Code::corrupt); }

 private:
  const bool lost_;
};

TEST(CutSteps, TellWhichPartFailed) {
  for (const bool lost : {true, false}) {
    Failing part(lost);
    CutPart* const parts[] = {&part, &part};
    const auto taken = cut_all(
        parts,
        [](const Error& error, std::size_t number) {
          return Error{error.code, 0, static_cast<std::uint32_t>(number + 10)};
        },
        [] { return false; });
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error(), (Error{lost ? Code::connection_lost : Code::not_found, 0, 10}));
  }
}

}  // namespace
}  // namespace espalier::client
