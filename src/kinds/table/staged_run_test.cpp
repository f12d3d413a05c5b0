// SPDX-License-Identifier: Apache-2.0
// How much a run does between two looks at the clock, counted in rows and bytes.
#include "kinds/table/staged_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kinds/table/pipeline_builder.hpp"
#include "kinds/table/testing/memory_rows.hpp"

namespace espalier::table {
namespace {

struct Most {
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
};

/// Runs a query of so many rows, by steps as the run wants them.
Most most_of_a_step(const Schema& schema, std::size_t rows, const PipelineBuilder& builder) {
  const MemoryRows memory(schema, std::vector<std::byte>(rows * schema.row_bytes()));
  MemorySource source(memory, 30'000);
  StagedRun run(*check_pipeline(*builder.finish(), schema), source, {.seed = 7});
  Most most;
  for (RunState state = RunState::running; state != RunState::done;) {
    const wire::QueryNumbers before = run.numbers();
    state = run.step(run.step_rows());
    EXPECT_NE(state, RunState::failed);
    const wire::QueryNumbers now = run.numbers();
    most.rows = std::max(most.rows, now.rows_read - before.rows_read);
    most.bytes = std::max(most.bytes, now.bytes_read - before.bytes_read);
    run.clear();
  }
  EXPECT_EQ(run.numbers().rows_read, rows);
  return most;
}

TEST(StagedRun, LooksAtTheClockAfter64KiB) {
  constexpr std::uint64_t kBytes = 64 << 10;
  for (const char* const text : {"a i32 not null", "a i64 not null, b text(100)",
                                 "a i64 not null, b text(1000), c text(1000), d text(1000)"}) {
    const Schema schema = *Schema::parse(text);
    PipelineBuilder all;
    std::vector<PipelineBuilder::NodeId> columns;
    for (std::size_t i = 0; i < schema.columns().size(); ++i) columns.push_back(all.column(i));
    all.project(columns);
    EXPECT_LE(most_of_a_step(schema, 20'000, all).bytes, kBytes) << text;
  }
}

TEST(StagedRun, LooksAtTheClockAfter64RowsWhereOneMayCostMicroseconds) {
  const Schema schema = *Schema::parse("a i64 not null, b text(20) not null");
  for (const auto& [pattern, rows] :
       {std::pair{"%a_b%", std::uint64_t{64}}, std::pair{"%ab%", std::uint64_t{256}}}) {
    PipelineBuilder like;
    like.filter(like.like(like.column(1), text_constant(pattern)));
    const PipelineBuilder::NodeId items[] = {like.column(0)};
    like.project(items);
    EXPECT_LE(most_of_a_step(schema, 20'000, like).rows, rows) << pattern;
  }
}

TEST(StagedRun, LooksAtTheClockAfterAsManyTextsHoweverManyARowHas) {
  const Schema schema = *Schema::parse("a i64 not null, b text(20) not null");
  for (const auto& [pattern, texts] :
       {std::pair{"%a_b%", std::uint64_t{64}}, std::pair{"%ab%", std::uint64_t{256}}}) {
    for (const std::uint64_t patterns : {2u, 7u, 60u}) {
      PipelineBuilder like;
      for (std::uint64_t i = 0; i < patterns; ++i) {
        like.filter(like.like(like.column(1), text_constant(pattern)));
      }
      const PipelineBuilder::NodeId items[] = {like.column(0)};
      like.project(items);
      EXPECT_LE(most_of_a_step(schema, 2'000, like).rows, texts / patterns) << pattern;
    }
  }
}

}  // namespace
}  // namespace espalier::table
