// SPDX-License-Identifier: Apache-2.0
#include "bench/run_tree.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "bench/benchmark.hpp"
#include "bench/key_cache.hpp"
#include "bench/memory_probe.hpp"
#include "bench/probe.hpp"
#include "bench/run_lines.hpp"
#include "bench/runner.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kReadBlockBytes = std::uint64_t{256} << 20;

// The reference of scans: how fast this core reads memory sequentially. Measured again for each
// point: the machine may have changed meanwhile.
double sequential_read_bytes_per_s() {
  HugeBuffer block(kReadBlockBytes);
  std::memset(block.data(), 1, block.bytes());
  double result = 0;
  run_pinned([&] { result = read_sequentially(block, 0.1).bytes_per_s; });
  return result;
}

void add_read_share(Json& line, const Runner& runner, const RunResult& result) {
  const double scanned =
      result.items_per_s() * (runner.keys().mean_key_bytes() + runner.plan().values.bytes);
  line["bytes_per_s"] = std::round(scanned);
  line["sequential_read_bytes_per_s"] = std::round(sequential_read_bytes_per_s());
}

void run_point(std::string_view experiment, const TreePoint& point, std::uint32_t repeat,
               KeyCache& keys, Report& report) {
  Runner runner(point.options, keys.get(point.options), report.progress());
  std::optional<RunResult> first;
  for (const TargetKind kind : point.options.targets) {
    const RunResult result = runner.run(kind, repeat);
    if (!first) first = result;
    const bool compares = result.complete && first->complete && result.exact == first->exact;
    report.compared(result.ops, !compares || (result.result_hash == first->result_hash &&
                                              result.contents == first->contents));
    Json line = to_json(result, point.options, runner.plan(), runner.keys());
    line["experiment"] = experiment;
    line["parameter"] = point.label;
    if (experiment == kScanLength) add_read_share(line, runner, result);
    report.line(line);
  }
}

void run_experiment(std::string_view experiment, const TreeOptions& options, KeyCache& keys,
                    Report& report) {
  std::vector<Column> columns = run_columns();
  columns.insert(columns.begin(), {{"workload", -14, "workload"}, {"parameter", -34, "parameter"}});
  if (experiment == kScanLength) {
    columns.push_back({"GB/s", 6, "bytes_per_s", 1, 1e-9});
    columns.push_back({"reading GB/s", 12, "sequential_read_bytes_per_s", 1, 1e-9});
  }
  report.table(std::move(columns), std::string(experiment));
  const std::vector<TreePoint> points = tree_points(experiment, options);
  for (std::uint32_t repeat = 0; repeat < options.repeats; ++repeat) {
    for (const TreePoint& point : points) run_point(experiment, point, repeat, keys, report);
  }
}

}  // namespace

std::vector<ExperimentRow> TreeOptions::experiment_rows() const {
  const auto cache = std::make_shared<KeyCache>();
  std::vector<ExperimentRow> rows;
  for (const std::string_view name : tree_experiments()) {
    rows.push_back({name, {}, [this, name, cache](Report& report) {
                      run_experiment(name, *this, *cache, report);
                    }});
  }
  return rows;
}

}  // namespace espalier::bench
