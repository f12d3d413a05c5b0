// SPDX-License-Identifier: Apache-2.0
#include "bench/run_tree.hpp"

#include <fmt/ostream.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "bench/key_cache.hpp"
#include "bench/memory_probe.hpp"
#include "bench/probe.hpp"
#include "bench/progress.hpp"
#include "bench/report.hpp"
#include "bench/runner.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kReadBlockBytes = std::uint64_t{256} << 20;

// What scans are held against: how fast this core reads memory from end to end.
double sequential_read_bytes_per_s(std::uint64_t bytes) {
  HugeBuffer block(bytes);
  std::memset(block.data(), 1, block.bytes());
  double result = 0;
  run_pinned([&] { result = read_sequentially(block, 0.1).bytes_per_s; });
  return result;
}

class TreeRun {
 public:
  TreeRun(const TreeOptions& options, const Output& output)
      : options_(options), output_(output), progress_(output) {}

  void run(Experiment experiment) {
    const std::vector<Point> points = points_of(experiment, options_.base);
    std::vector<Table::Column> columns = run_columns();
    columns.insert(columns.begin(), {{"workload", -14}, {"parameter", -34}});
    Table table(output_.out, columns);
    if (!options_.base.json) fmt::print(output_.out, "{}\n", name(experiment));
    const std::uint64_t before = total_.runs;
    for (std::uint32_t repeat = 0; repeat < options_.base.repeats; ++repeat) {
      for (const Point& point : points) run(experiment, point, repeat, table);
    }
    if (total_.runs != before || options_.experiments.empty()) return;
    lacks_runs_ = true;
    say_nothing_measured(output_, name(experiment));
  }
  /// Returns what main should.
  [[nodiscard]] int finish() const {
    const int finished = print_total(output_, "tree", total_, options_.base.json);
    return lacks_runs_ ? 1 : finished;
  }

 private:
  void run(Experiment experiment, const Point& point, std::uint32_t repeat, Table& table) {
    const std::shared_ptr<const KeySet> keys = keys_.get(point.options);
    Runner runner(point.options, keys, progress_);
    std::optional<RunResult> first;
    for (const TargetKind kind : point.options.targets) {
      const RunResult result = runner.run(kind, repeat);
      total_.ops += result.ops;
      ++total_.runs;
      if (!first) first = result;
      if (result.complete && first->complete && result.exact == first->exact) {
        total_.equal = total_.equal && result.result_hash == first->result_hash &&
                       result.contents == first->contents;
      }
      print(experiment, point, result, runner, table);
    }
  }

  void print(Experiment experiment, const Point& point, const RunResult& result,
             const Runner& runner, Table& table) {
    if (!options_.base.json) {
      std::vector<std::string> cells = run_cells(result);
      cells.insert(cells.begin(), {std::string(name(point.options.workload)), point.label});
      table.row(cells);
      if (experiment == Experiment::scan_length) print_read_share(runner, result);
      return;
    }
    Json line = to_json("tree", result, point.options, runner.plan(), runner.keys());
    line["experiment"] = name(experiment);
    line["parameter"] = point.label;
    if (experiment == Experiment::scan_length) {
      const double read = sequential_read();
      line["bytes_per_s"] = std::round(bytes_per_s(runner, result));
      line["sequential_read_bytes_per_s"] = std::round(read);
    }
    print_line(output_.out, line);
  }

  void print_read_share(const Runner& runner, const RunResult& result) {
    const double scanned = bytes_per_s(runner, result);
    fmt::print(output_.out, "{:16}{:.1f} GB/s of keys and values, {:.2f} of sequential reading\n",
               "", scanned * 1e-9, scanned / sequential_read());
  }

  static double bytes_per_s(const Runner& runner, const RunResult& result) {
    return result.items_per_s() * (runner.keys().mean_key_bytes() + runner.plan().values.bytes);
  }

  // Measured again for each point: the machine may have changed meanwhile.
  static double sequential_read() { return sequential_read_bytes_per_s(kReadBlockBytes); }

  const TreeOptions& options_;
  const Output& output_;
  Progress progress_;
  KeyCache keys_;
  RunTotal total_;
  bool lacks_runs_ = false;  // of an experiment that was named
};

}  // namespace

std::optional<std::string> problem_of(const TreeOptions& options) {
  return problem_of(options.base);
}

int run_tree(const TreeOptions& options, const Output& output) {
  if (const auto problem = problem_of(options)) throw std::runtime_error(*problem);
  TreeRun run(options, output);
  if (options.experiments.empty()) {
    for (const Experiment experiment : all_experiments()) run.run(experiment);
  } else {
    for (const Experiment experiment : options.experiments) run.run(experiment);
  }
  return run.finish();
}

}  // namespace espalier::bench
