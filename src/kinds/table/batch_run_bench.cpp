// SPDX-License-Identifier: Apache-2.0
// What a core filters, projects and groups of rows of 64 bytes: source bytes for each second.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "kinds/table/batch_run.hpp"
#include "kinds/table/pipeline_builder.hpp"
#include "kinds/table/snapshot_source.hpp"
#include "kinds/table/table_object.hpp"
#include "memory/buffer_pool.hpp"

namespace espalier::table {
namespace {

using wire::Aggregate;
using wire::ExpressionKind;

constexpr std::size_t kRows = std::size_t{1} << 22;

/// A table of eight columns of 8 bytes: a is below 1000, g below its groups, the rest anything. In
/// the memory that a node's tables have, because small pages would cost as much as the work.
class BenchTable {
 public:
  explicit BenchTable(std::uint64_t groups)
      : region_(*memory::Region::reserve({.bytes_max = std::uint64_t{512} << 20})), pool_(region_) {
    table_ = *create_table(
        catalog_, pool_, "t",
        *Schema::parse("a i64 not null, g i64 not null, s i64 not null, c i64 not null,"
                       " d i64 not null, e i64 not null, f i64 not null, h i64 not null"));
    constexpr std::size_t kAtOnce = 1 << 14;
    base::Random random(1);
    std::vector<std::byte> bytes(kAtOnce * 64);
    for (std::size_t at = 0; at < kRows; at += kAtOnce) {
      random.fill(bytes);
      for (std::size_t i = 0; i < kAtOnce; ++i) {
        const std::uint64_t values[] = {random.below(1000), random.below(groups),
                                        random.below(1000)};
        std::memcpy(bytes.data() + i * 64, values, sizeof values);
      }
      if (!table_->append(bytes)) std::abort();
    }
  }

  /// Made once for all benchmarks that follow each other with as many groups.
  static const BenchTable& of(std::uint64_t groups) {
    static std::uint64_t made_for = 0;
    static std::unique_ptr<BenchTable> made;
    if (made_for != groups) {
      made.reset();
      made = std::make_unique<BenchTable>(groups);
      made_for = groups;
    }
    return *made;
  }
  [[nodiscard]] const std::shared_ptr<Table>& table() const { return table_; }

 private:
  memory::Region region_;
  memory::BufferPool pool_;
  catalog::Catalog catalog_;
  std::shared_ptr<Table> table_;
};

/// Room of 64 KiB that is always free.
class FreeSink final : public RowSink {
 public:
  std::span<std::byte> room() override { return block_; }
  void commit(std::size_t rows, std::size_t) override { rows_ += rows; }
  [[nodiscard]] std::size_t rows() const { return rows_; }

 private:
  std::vector<std::byte> block_ = std::vector<std::byte>(64 * 1024);
  std::size_t rows_ = 0;
};

void run(benchmark::State& state, const PipelineBuilder& builder, std::uint64_t groups) {
  const auto& table = BenchTable::of(groups).table();
  const BatchProgram program(*check_pipeline(*builder.finish(), table->schema()));
  for (auto _ : state) {
    SnapshotSource source(table);
    FreeSink sink;
    BatchRun run(program, source, sink, {.seed = 7});
    while (run.step(4096) == RunState::running) {
    }
    benchmark::DoNotOptimize(sink.rows());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kRows * 64));
}

/// Every byte is loaded, and nothing else done: what the others are compared with.
void read_only(benchmark::State& state) {
  const TableSnapshot snapshot(BenchTable::of(1).table());
  for (auto _ : state) {
    std::array<std::uint64_t, 8> sums{};
    for (std::uint64_t page = 0; page < snapshot.pages(); ++page) {
      const RowSpan span = *snapshot.page(page);
      for (std::uint32_t i = 0; i < span.count; ++i) {
        std::array<std::uint64_t, 8> words;
        std::memcpy(words.data(), span[i], sizeof words);
        for (std::size_t k = 0; k < words.size(); ++k) sums[k] += words[k];
      }
    }
    benchmark::DoNotOptimize(sums);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kRows * 64));
}
BENCHMARK(read_only)->Unit(benchmark::kMillisecond);

void select_all_columns(benchmark::State& state) {
  PipelineBuilder builder;
  builder.filter(builder.binary(ExpressionKind::less, builder.column(0),
                                builder.constant(integer_constant(state.range(0) * 10))));
  run(state, builder, 1);
}
BENCHMARK(select_all_columns)->Arg(1)->Arg(25)->Arg(50)->Arg(100)->Unit(benchmark::kMillisecond);

void select_two_columns(benchmark::State& state) {
  PipelineBuilder builder;
  builder.filter(builder.binary(ExpressionKind::less, builder.column(0),
                                builder.constant(integer_constant(state.range(0) * 10))));
  const PipelineBuilder::NodeId values[] = {builder.column(1), builder.column(2)};
  builder.project(values);
  run(state, builder, 1);
}
BENCHMARK(select_two_columns)->Arg(25)->Arg(100)->Unit(benchmark::kMillisecond);

void group_by_sum(benchmark::State& state) {
  PipelineBuilder builder;
  const PipelineBuilder::NodeId keys[] = {builder.column(1)};
  const PipelineBuilder::AggregateOf sums[] = {{Aggregate::sum, builder.column(2)}};
  builder.group_by(keys, sums);
  run(state, builder, static_cast<std::uint64_t>(state.range(0)));
}
BENCHMARK(group_by_sum)
    ->Arg(16)
    ->Arg(1024)
    ->Arg(65536)
    ->Arg(1 << 20)
    ->Unit(benchmark::kMillisecond);

void distinct(benchmark::State& state) {
  PipelineBuilder builder;
  const PipelineBuilder::NodeId values[] = {builder.column(1)};
  builder.project(values);
  builder.distinct();
  run(state, builder, static_cast<std::uint64_t>(state.range(0)));
}
BENCHMARK(distinct)->Arg(1024)->Arg(1 << 20)->Unit(benchmark::kMillisecond);

void sum_of_all(benchmark::State& state) {
  PipelineBuilder builder;
  const PipelineBuilder::AggregateOf sums[] = {{Aggregate::sum, builder.column(2)},
                                               {Aggregate::count_rows, wire::kNoExpression}};
  builder.filter(builder.binary(ExpressionKind::less, builder.column(0),
                                builder.constant(integer_constant(500))));
  builder.group_by({}, sums);
  run(state, builder, 1);
}
BENCHMARK(sum_of_all)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace espalier::table

BENCHMARK_MAIN();
