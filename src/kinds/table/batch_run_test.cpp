// SPDX-License-Identifier: Apache-2.0
// The batch executor against the reference, over pipelines and rows by chance.
#include "kinds/table/batch_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "base/cpu.hpp"
#include "base/random.hpp"
#include "base/testing/seeds.hpp"
#include "kinds/table/pipeline_builder.hpp"
#include "kinds/table/testing/memory_rows.hpp"
#include "kinds/table/testing/run_checks.hpp"

namespace espalier::table {
namespace {

/// Rounds by tenths of their usual number: of few seeds (base/testing/seeds.hpp) until what seldom
/// happens has happened.
class Rounds {
 public:
  explicit Rounds(int usually) : tenth_(usually / kTenths), tenths_(kTenths) {}
  template <class Run, class Happened>
  void run(const Run& run, const Happened& all_happened) {
    for (; static_cast<int>(tenths_.ended()) < kTenths && tenths_.more(all_happened(*this));
         tenths_.done()) {
      ASSERT_EQ(run(tenth_), "");
    }
  }
  /// How often it must have happened, where all rounds have it so often.
  [[nodiscard]] int share(int usually) const {
    return usually * static_cast<int>(tenths_.ended()) / kTenths;
  }

 private:
  static constexpr int kTenths = 10;  // however many seeds are asked for

  int tenth_;
  base::Seeds tenths_;
};

TEST(BatchRun, AgreesWithTheReference) {
  base::Random random(base::seed_from_environment(1));
  SeenInRuns seen;
  Rounds rounds(300);
  const auto all_happened = [&](const Rounds& of) {
    return seen.errors > of.share(20) && seen.stalls > of.share(1000) &&
           seen.groups > of.share(100) && seen.rows > of.share(500) && seen.smart > of.share(100);
  };
  rounds.run([&](int count) { return difference_in_rounds(random, count, seen); }, all_happened);
  EXPECT_GT(seen.errors, rounds.share(20));
  EXPECT_GT(seen.stalls, rounds.share(1000));
  EXPECT_GT(seen.groups, rounds.share(100));
  EXPECT_GT(seen.rows, rounds.share(500));
  EXPECT_GT(seen.smart, rounds.share(100));
}

TEST(BatchRun, AgreesInBoundedMemory) {
  base::Random random(base::seed_from_environment(2));
  SeenInRuns seen;
  Rounds rounds(60);
  const auto all_happened = [&](const Rounds& of) {
    return seen.flushes > of.share(10) && seen.unsure > of.share(2);
  };
  rounds.run([&](int count) { return difference_in_little_memory(random, count, seen); },
             all_happened);
  EXPECT_GT(seen.flushes, rounds.share(10));
  EXPECT_GT(seen.unsure, rounds.share(2));
}

TEST(BatchRun, AgreesOnWholeRowsInEveryForm) {
  base::Random random(base::seed_from_environment(3));
  SeenInRuns seen;
  Rounds rounds(60);
  const auto all_happened = [&](const Rounds& of) {
    return seen.rows > of.share(100) && seen.scalar > of.share(100);
  };
  rounds.run([&](int count) { return difference_in_whole_rows(random, count, seen); },
             all_happened);
  EXPECT_GT(seen.rows, rounds.share(100));
  EXPECT_GT(seen.scalar, rounds.share(100));
  const bool has_vectors = base::isa() == base::Isa::avx512;
  EXPECT_GT(seen.avx512, has_vectors ? rounds.share(100) : -1);
}

TEST(BatchRun, AgreesOnKeysThatLieNearEachOther) {
  base::Random random(base::seed_from_environment(4));
  SeenInRuns seen;
  Rounds rounds(150);
  const auto all_happened = [&](const Rounds& of) {
    return seen.direct > of.share(200) && seen.flushes > of.share(10) &&
           seen.stalls > of.share(100);
  };
  rounds.run([&](int count) { return difference_in_near_keys(random, count, seen); }, all_happened);
  EXPECT_GT(seen.direct, rounds.share(200));
  EXPECT_GT(seen.flushes, rounds.share(10));
  EXPECT_GT(seen.stalls, rounds.share(100));
}

/// Runs a query of rows whose keys all differ, and returns the most that its table of groups grew
/// in one step.
std::uint64_t most_growths_in_a_step(const PipelineBuilder& builder, std::uint64_t& growths) {
  constexpr std::uint64_t kRows = 400'000;
  const Schema schema = *Schema::parse("k i64 not null, v i64 not null");
  std::vector<std::byte> bytes(kRows * schema.row_bytes());
  for (std::uint64_t i = 0; i < kRows; ++i) {
    const std::uint64_t words[] = {base::mix64(i + 1), i};
    std::memcpy(bytes.data() + i * sizeof words, words, sizeof words);
  }
  const MemoryRows rows(schema, std::move(bytes));
  MemorySource source(rows, 30'000);
  const BatchProgram program(*check_pipeline(*builder.finish(), schema));
  MemorySink sink;
  BatchRun run(program, source, sink, {.seed = 7});
  std::uint64_t most = 0;
  RunState state = RunState::running;
  while (state == RunState::running || state == RunState::stalled) {
    const std::uint64_t before = run.numbers().growths;
    sink.give_room();
    state = run.step(512);
    most = std::max(most, run.numbers().growths - before);
  }
  EXPECT_EQ(state, RunState::done);
  EXPECT_EQ(run.numbers().rows_sent, kRows);
  growths = run.numbers().growths;
  return most;
}

// So long is a step at most, whatever the keys are: work is counted here, not time.
TEST(BatchRun, LetsGroupsGrowOnceInAStep) {
  std::uint64_t growths = 0;
  PipelineBuilder groups;
  const PipelineBuilder::NodeId keys[] = {groups.column(0)};
  const PipelineBuilder::AggregateOf sums[] = {{wire::Aggregate::sum, groups.column(1)}};
  groups.group_by(keys, sums);
  EXPECT_EQ(most_growths_in_a_step(groups, growths), 1u);
  EXPECT_GT(growths, 60u);
  PipelineBuilder distinct;
  const PipelineBuilder::NodeId values[] = {distinct.column(0)};
  distinct.project(values);
  distinct.distinct();
  EXPECT_EQ(most_growths_in_a_step(distinct, growths), 1u);
  EXPECT_GT(growths, 60u);
}

}  // namespace
}  // namespace espalier::table
