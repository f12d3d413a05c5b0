// SPDX-License-Identifier: Apache-2.0
#include "table/explain.hpp"

#include <gtest/gtest.h>

#include <string>

#include "table/pipeline_builder.hpp"

namespace espalier::table {
namespace {

using wire::Aggregate;
using wire::ExpressionKind;

Schema schema() {
  return *Schema::parse("a i64 not null, pad1 char(120), b decimal(12,2), pad2 char(200)");
}

std::string explanation(const PipelineBuilder& builder) {
  const BatchProgram program(*check_pipeline(*builder.finish(), schema()));
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

}  // namespace
}  // namespace espalier::table
