// SPDX-License-Identifier: Apache-2.0
// Points of `espalier-bench table` that no client has a part in: the executor into a stage, and
// what it is held to: reading the same pages, copying them, and the same groups by absl.
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "bench/map_session.hpp"
#include "bench/probe.hpp"
#include "bench/run_table.hpp"
#include "table/batch_run.hpp"
#include "table/snapshot_source.hpp"
#include "table/wide.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint32_t kRowsAtOnce = 4096;  // as a node does (offload/query_run.cpp)
constexpr std::uint32_t kRowsToGroupAtOnce = 512;
constexpr std::size_t kGroupBytes = std::size_t{64} << 20;

/// 64 KiB that are free again as soon as they are written.
class Stage final : public table::RowSink {
 public:
  explicit Stage(std::size_t row_bytes, bool hashes) : row_bytes_(row_bytes), hashes_(hashes) {}
  std::span<std::byte> room() override { return std::span(block_).subspan(used_); }
  void commit(std::size_t rows, std::size_t bytes) override {
    if (hashes_) hash_ += hash_of_rows(room().first(bytes), row_bytes_);
    rows_ += rows;
    used_ += bytes;
    if (block_.size() - used_ < std::max(kSpareBytes, row_bytes_)) used_ = 0;
  }
  [[nodiscard]] std::uint64_t rows() const { return rows_; }
  [[nodiscard]] std::uint64_t hash() const { return hash_; }

 private:
  static constexpr std::size_t kSpareBytes = 1024;
  std::vector<std::byte> block_ = std::vector<std::byte>(std::size_t{64} << 10);
  std::size_t row_bytes_;
  bool hashes_;
  std::size_t used_ = 0;
  std::uint64_t rows_ = 0;
  std::uint64_t hash_ = 0;
};

/// What one run gave.
struct StageRun {
  table::RunNumbers numbers;
  std::uint64_t rows = 0;
  std::uint64_t hash = 0;
  PassTime time;
  std::uint64_t longest_step_ns = 0;
};

StageRun run_into_stage(const TableData& data, const table::BatchProgram& program,
                        std::uint64_t seed, bool hashes, bool times_steps) {
  const table::Pipeline& pipeline = program.pipeline();
  table::SnapshotSource source(data.table());
  Stage stage(pipeline.result.row_bytes(), hashes);
  StageRun result;
  const PassWatch watch;
  table::BatchRun run(program, source, stage, {.group_bytes = kGroupBytes, .seed = seed});
  const bool groups = pipeline.grouped || pipeline.distinct;
  table::RunState state = table::RunState::running;
  while (state == table::RunState::running) {
    const std::uint64_t begin_ns = times_steps ? thread_cpu_ns() : 0;
    state = run.step(groups ? kRowsToGroupAtOnce : kRowsAtOnce);
    if (times_steps) {
      result.longest_step_ns = std::max(result.longest_step_ns, thread_cpu_ns() - begin_ns);
    }
  }
  result.time = watch.elapsed();
  if (state != table::RunState::done) throw std::runtime_error("a query of the benchmark failed");
  result.numbers = run.numbers();
  result.rows = stage.rows();
  result.hash = stage.hash();
  return result;
}

/// A pass beside those that read the same pages, right before and after it.
class BesideReading {
 public:
  explicit BesideReading(const TableData& data) : data_(data), before_(read_pass(data)) {}
  void add_to(PointSample& sample, const PassTime& pass) const {
    const PassTime after = read_pass(data_);
    sample.took(data_.rows(), pass.seconds);
    const auto bytes = static_cast<double>(data_.bytes());
    const double read_s = (before_.seconds + after.seconds) / 2;
    const double read_cpu_s = (before_.cpu_seconds + after.cpu_seconds) / 2;
    sample.numbers.emplace_back("gb_per_s", bytes / pass.seconds * 1e-9);
    sample.numbers.emplace_back("read_gb_per_s", bytes / read_s * 1e-9);
    sample.numbers.emplace_back("of_read", read_s / pass.seconds);
    sample.numbers.emplace_back("gb_per_cpu_s", bytes / pass.cpu_seconds * 1e-9);
    sample.numbers.emplace_back("read_gb_per_cpu_s", bytes / read_cpu_s * 1e-9);
    sample.numbers.emplace_back("cpu_of_read", read_cpu_s / pass.cpu_seconds);
  }

 private:
  const TableData& data_;
  PassTime before_;
};

MeasuredPoint new_point(const TableOptions& options, std::string target, const TableQuery& query) {
  MeasuredPoint point;
  point.target = std::move(target);
  point.workload = query.workload;
  point.parameters = query.parameters;
  point.parameters["table_bytes"] = options.table_bytes;
  point.answers = point.workload + " " + query.parameters.dump();
  return point;
}

MeasuredPoint stage_point(const TableOptions& options, const TableQuery& query) {
  MeasuredPoint point = new_point(options, "stage", query);
  point.measure = [=] {
    const auto data = TableData::of(options.table_bytes, query.row_bytes, options.seed);
    auto checked = table::check_pipeline(message_of(query), data->table()->schema());
    if (!checked) throw std::runtime_error(checked.error().message());
    const table::BatchProgram program(std::move(*checked));
    PointSample sample;
    run_pinned([&] {
      // Once with the clock at each step, and a look at every row: neither is in the rate.
      const StageRun hashed = run_into_stage(*data, program, options.seed, true, true);
      const BesideReading beside(*data);
      const StageRun timed = run_into_stage(*data, program, options.seed, false, false);
      if (timed.rows != hashed.rows) throw std::runtime_error("two runs give different rows");
      sample.checksum = hashed.hash;
      beside.add_to(sample, timed.time);
      sample.numbers.emplace_back("result_rows", static_cast<double>(timed.rows));
      sample.numbers.emplace_back("bytes_per_op", static_cast<double>(timed.numbers.bytes_read) /
                                                      static_cast<double>(data->rows()));
      sample.numbers.emplace_back("longest_step_us",
                                  static_cast<double>(hashed.longest_step_ns) * 1e-3);
    });
    return sample;
  };
  return point;
}

/// One pass over all rows of `data`, which gives the hash of the rows that a query's result has.
template <class Pass>
MeasuredPoint peer_point(const TableOptions& options, std::string target, const TableQuery& query,
                         Pass pass) {
  MeasuredPoint point = new_point(options, std::move(target), query);
  point.measure = [=] {
    const auto data = TableData::of(options.table_bytes, query.row_bytes, options.seed);
    PointSample sample;
    run_pinned([&] {
      const BesideReading beside(*data);
      PassTime time;
      sample.checksum = pass(*data, query, time);
      beside.add_to(sample, time);
    });
    return sample;
  };
  return point;
}

std::uint64_t word_at(const std::byte* row, std::size_t column) {
  std::uint64_t word = 0;
  std::memcpy(&word, row + 8 * column, sizeof word);
  return word;
}

template <class Use>
void for_rows(const TableData& data, Use&& use) {
  const table::TableSnapshot snapshot(data.table());
  for (std::uint64_t page = 0; page < snapshot.pages(); ++page) {
    const auto span = value_or_throw(snapshot.page(page), "cannot read the table");
    for (std::uint32_t i = 0; i < span.count; ++i) use(span[i]);
  }
}

std::uint64_t absl_groups(const TableData& data, const TableQuery& query, PassTime& time) {
  const PassWatch watch;
  absl::flat_hash_map<std::uint64_t, table::Wide> sums;
  for_rows(data, [&, column = query.key_column](const std::byte* row) {
    sums[word_at(row, column)] += static_cast<std::int64_t>(word_at(row, kValueColumn));
  });
  time = watch.elapsed();
  std::uint64_t hash = 0;
  for (const auto& [key, sum] : sums) {
    // As a group's row: key, sum in two halves, no nulls.
    const std::uint64_t row[] = {key, static_cast<std::uint64_t>(table::low_half(sum)),
                                 static_cast<std::uint64_t>(table::high_half(sum)), 0};
    hash += hash_of_rows(std::as_bytes(std::span(row)), sizeof row);
  }
  return hash;
}

std::uint64_t absl_distinct(const TableData& data, const TableQuery& query, PassTime& time) {
  const PassWatch watch;
  absl::flat_hash_set<std::uint64_t> keys;
  for_rows(data, [&, column = query.key_column](const std::byte* row) {
    keys.insert(word_at(row, column));
  });
  time = watch.elapsed();
  std::uint64_t hash = 0;
  for (const std::uint64_t key : keys) {
    hash += hash_of_rows(std::as_bytes(std::span(&key, 1)), sizeof key);
  }
  return hash;
}

MeasuredPoint rate_point(const TableOptions& options, const std::string& target,
                         PassTime (*pass)(const TableData&)) {
  TableQuery query;
  query.workload = "all";
  MeasuredPoint point = new_point(options, target, query);
  point.answers = target;
  point.measure = [=] {
    const auto data = TableData::of(options.table_bytes, query.row_bytes, options.seed);
    PointSample sample;
    run_pinned([&] {
      if (target == "copy") static_cast<void>(pass(*data));  // touches what is copied to
      const BesideReading beside(*data);
      beside.add_to(sample, pass(*data));
    });
    return sample;
  };
  return point;
}

}  // namespace

std::vector<MeasuredPoint> stage_points(const TableOptions& options, std::string_view experiment) {
  std::vector<MeasuredPoint> points;
  if (experiment == "response") return points;
  if (is_chosen(options.targets, "read")) points.push_back(rate_point(options, "read", read_pass));
  if (is_chosen(options.targets, "copy")) points.push_back(rate_point(options, "copy", copy_pass));
  for (const TableQuery& query : table_queries(options, experiment)) {
    if (is_chosen(options.targets, "stage")) points.push_back(stage_point(options, query));
    if (!is_chosen(options.targets, "absl")) continue;
    if (experiment == "group") points.push_back(peer_point(options, "absl", query, absl_groups));
    if (experiment == "distinct") {
      points.push_back(peer_point(options, "absl", query, absl_distinct));
    }
  }
  return points;
}

}  // namespace espalier::bench
