// SPDX-License-Identifier: Apache-2.0
// Runs over real tables: rows of several pages, appends meanwhile, a table that is dropped.
#include "kinds/table/snapshot_source.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kinds/table/batch_run.hpp"
#include "kinds/table/pipeline_builder.hpp"
#include "kinds/table/result.hpp"
#include "kinds/table/testing/memory_rows.hpp"
#include "kinds/table/testing/random_table.hpp"

namespace espalier::table {
namespace {

using wire::Aggregate;
using wire::ExpressionKind;

class SnapshotSourceTest : public testing::Test {
 protected:
  void append(std::uint64_t rows) {
    std::vector<std::byte> bytes(rows * 64);
    for (std::uint64_t i = 0; i < rows; ++i, ++next_) {
      const std::uint64_t key = next_ % 10;
      std::memcpy(bytes.data() + i * 64, &next_, 8);
      std::memcpy(bytes.data() + i * 64 + 8, &key, 8);
    }
    ASSERT_TRUE(table_->append(bytes));
  }

  /// select k, count(*), sum(n) from t where n >= 5 group by k
  BatchProgram program() const {
    PipelineBuilder builder;
    builder.filter(builder.binary(ExpressionKind::greater_equal, builder.column(0),
                                  builder.constant(integer_constant(5))));
    const PipelineBuilder::NodeId keys[] = {builder.column(1)};
    const PipelineBuilder::AggregateOf sums[] = {{Aggregate::count_rows, wire::kNoExpression},
                                                 {Aggregate::sum, builder.column(0)}};
    builder.group_by(keys, sums);
    return BatchProgram(*check_pipeline(*builder.finish(), table_->schema()));
  }

  TableStore store_;
  std::shared_ptr<Table> table_ = store_.create(
      schema_of("n i64 not null, k i64 not null, a i64 not null, b i64 not null, c i64 not null,"
                " d i64 not null, e i64 not null, f i64 not null"));
  std::uint64_t next_ = 0;
};

TEST_F(SnapshotSourceTest, GroupsTheRowsOfAllPagesThatWereThereWhenItBegan) {
  append(100'000);  // of 64 bytes: several pages
  const BatchProgram compiled = program();
  SnapshotSource source(table_);
  ASSERT_GT(source.snapshot().pages(), 2u);
  MemorySink sink;
  BatchRun run(compiled, source, sink, {.seed = 1});
  append(50);
  while (run.step(4096) == RunState::running) {
  }
  EXPECT_EQ(run.step(1), RunState::done);
  EXPECT_EQ(run.numbers().rows_read, 100'000u);
  EXPECT_EQ(run.numbers().rows_passed, 99'995u);
  EXPECT_EQ(run.numbers().bytes_read, 100'000u * 64);
  const Pipeline& pipeline = compiled.pipeline();
  ResultMerge merge(pipeline, 2);
  merge.take(sink.rows());
  ASSERT_EQ(merge.size(), 10u);
  for (std::size_t i = 0; i < 10; ++i) {
    const auto of = [&](std::size_t item) {
      const Value value = answer_value(pipeline, pipeline.items[item], merge.row(i));
      return static_cast<std::int64_t>(value.number);
    };
    // The first row that passes has key 5.
    const auto key = static_cast<std::int64_t>((i + 5) % 10);
    EXPECT_EQ(of(0), key);
    EXPECT_EQ(of(1), key < 5 ? 9'999 : 10'000);
    EXPECT_EQ(of(2), 10 * (9'999LL * 10'000 / 2) + 10'000 * key - (key < 5 ? key : 0));
  }
}

TEST_F(SnapshotSourceTest, ARunOfADroppedTableEnds) {
  append(100'000);
  const BatchProgram compiled = program();
  SnapshotSource source(table_);
  MemorySink sink;
  BatchRun run(compiled, source, sink, {.seed = 1});
  EXPECT_EQ(run.step(1000), RunState::running);
  table_->set_dropped();
  RunState state = RunState::running;
  while (state == RunState::running) state = run.step(4096);
  ASSERT_EQ(state, RunState::failed);
  EXPECT_EQ(run.error().source.code, Code::dropped);
  EXPECT_EQ(run.step(1), RunState::failed);
}

TEST_F(SnapshotSourceTest, AnEmptyTableHasNoGroups) {
  const BatchProgram compiled = program();
  SnapshotSource source(table_);
  MemorySink sink;
  BatchRun run(compiled, source, sink, {.seed = 1});
  EXPECT_EQ(run.step(4096), RunState::done);
  EXPECT_EQ(sink.count(), 0u);
}

}  // namespace
}  // namespace espalier::table
