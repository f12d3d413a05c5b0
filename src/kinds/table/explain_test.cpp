// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/explain.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/random.hpp"
#include "kinds/table/pipeline_builder.hpp"
#include "kinds/table/staged_run.hpp"
#include "kinds/table/testing/literal_regexes.hpp"
#include "kinds/table/testing/memory_rows.hpp"
#include "kinds/table/testing/random_pipeline.hpp"

namespace espalier::table {
namespace {

using wire::Aggregate;
using wire::ExpressionKind;

Schema padded_schema() {
  return *Schema::parse("a i64 not null, pad1 char(120), b decimal(12,2), pad2 char(200)");
}

std::string explanation(const PipelineBuilder& builder) {
  const BatchProgram program(*check_pipeline(*builder.finish(), padded_schema()));
  std::string text;
  for (const std::string& line : explain(program)) text += line + "\n";
  return text;
}

TEST(Explain, NamesEachOperator) {
  PipelineBuilder builder;
  builder.filter(builder.binary(ExpressionKind::less, builder.column(2),
                                builder.constant(decimal_constant(995, 2))));
  const PipelineBuilder::NodeId keys[] = {builder.column(0)};
  const PipelineBuilder::AggregateOf aggregates[] = {{Aggregate::avg, builder.column(2)},
                                                     {Aggregate::count_rows, wire::kNoExpression}};
  builder.group_by(keys, aggregates);
  builder.limit(3);
  EXPECT_EQ(explanation(builder),
            "scan, smart: 2 lines of a row for filters, 1 more of rows that pass, of 6\n"
            "filter: b < 9.95\n"
            "group by a: avg(b), count(*)\n"
            "limit: 3\n"
            "pack: rows of 48 bytes\n");
}

TEST(Explain, WholeRowsWhereMostLinesAreWanted) {
  PipelineBuilder builder;
  builder.distinct();
  EXPECT_EQ(explanation(builder),
            "scan: whole rows\n"
            "project: a, pad1, b, pad2\n"
            "distinct\n"
            "pack: rows of 344 bytes\n");
  PipelineBuilder narrow;
  const PipelineBuilder::NodeId values[] = {narrow.column(0)};
  narrow.project(values);
  narrow.address(wire::Addressing::full);
  EXPECT_EQ(explanation(narrow), "scan: whole rows\nproject: a\npack: rows of 8 bytes\n");
}

std::string names(const std::vector<OperatorState>& states) {
  std::string text;
  for (const OperatorState& state : states) text += std::string(state.name) + " ";
  return text;
}

// All that a run keeps is some operator's, the stage besides.
TEST(Explain, StatesOfOperatorsAreWhatARunKeeps) {
  const std::uint64_t seed = base::seed_from_environment(1);
  SCOPED_TRACE("seed " + std::to_string(seed));
  base::Random random(seed);
  LiteralRegexes regexes;
  std::size_t groups = 0;
  for (int round = 0; round < 300; ++round) {
    const Schema small = random_small_schema(random);
    const MemoryRows rows = random_small_rows(random, small, 500, 0);
    const Pipeline pipeline = random_pipeline(random, small, &regexes);
    MemorySource source(rows);
    StagedRun run(pipeline, source, {});
    for (auto state = RunState::running; state != RunState::done && state != RunState::failed;) {
      state = run.step(4096);
      run.clear();
    }
    const BatchProgram program(pipeline);
    const std::uint64_t memory = run.numbers().memory_bytes;
    const auto states = operator_states(program, memory);
    std::size_t sum = 0;
    for (const OperatorState& state : states) sum += state.bytes;
    EXPECT_EQ(sum, memory + states.back().bytes) << names(states);
    EXPECT_EQ(states.size(), explain(program).size()) << names(states);
    if (pipeline.grouped || pipeline.distinct) ++groups;
  }
  EXPECT_GT(groups, 0u);
}

TEST(Explain, ClearRowsAreTheStateOfDecrypting) {
  PipelineBuilder builder;
  builder.decrypt();
  const PipelineBuilder::NodeId values[] = {builder.column(0)};
  builder.project(values);
  const BatchProgram program(*check_pipeline(*builder.finish(), padded_schema()));
  const auto states = operator_states(program, 0);
  EXPECT_EQ(names(states), "decrypt scan project pack ");
  EXPECT_GT(states[0].bytes, std::size_t{8} << 10);
  EXPECT_EQ(states.back().bytes, StagedRun::kStageBytes);
}

}  // namespace
}  // namespace espalier::table
