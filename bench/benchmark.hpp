// SPDX-License-Identifier: Apache-2.0
// A benchmark is a struct of options: it has a name, declares its options as rows, and lists its
// experiments as rows. All else is here: the command line, validation of options, selection of
// experiments, rounds, lines, tables, the total and the exit code.
//
//   struct LogOptions : PointOptions {
//     static constexpr const char* kBench = "log";
//     static constexpr const char* kSummary = "commits to a disk";
//     std::uint64_t ops = 1000;
//     void declare(OptionRows& rows);
//     [[nodiscard]] std::vector<ExperimentRow> experiment_rows() const;
//   };
//
// Thread: one; points start threads of their own.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/option_rows.hpp"
#include "bench/output.hpp"
#include "bench/point_run.hpp"
#include "bench/report.hpp"

namespace espalier::bench {

/// Makes nothing in advance: rows are also listed for their names.
struct ExperimentRow {
  std::string_view name;
  /// Its points: they are measured in rounds, and medians come last (bench/point_run.hpp). Or:
  std::function<std::vector<MeasuredPoint>(Report& report)> points{};
  /// it measures and prints lines itself.
  std::function<void(Report& report)> lines{};
  bool only_named = false;  ///< it runs only if named
};

template <class Options>
concept Benchmark = std::derived_from<Options, PointOptions> &&
    requires(Options& options, OptionRows& rows) {
  options.declare(rows);
  { options.experiment_rows() } -> std::same_as<std::vector<ExperimentRow>>;
  std::string(Options::kBench) + Options::kSummary;
};

/// Declares `--experiment`, if there are several.
void declare_experiments(OptionRows& rows, PointOptions& options,
                         const std::vector<ExperimentRow>& experiments);

/// Returns main's exit code: 1 if answers differ, or if a named experiment, or all of them,
/// measured nothing. Errors: what an experiment throws.
int run_experiments(std::string_view bench, const PointOptions& options,
                    const std::vector<ExperimentRow>& experiments, const Output& output);

/// What is wrong with the options, in one sentence that names the flag; nothing if they are valid.
template <Benchmark Options>
[[nodiscard]] std::optional<std::string> problem_of(const Options& options) {
  Options copy = options;
  OptionRows rows;
  declare_experiments(rows, copy, copy.experiment_rows());
  copy.declare(rows);
  return rows.problem();
}

/// Runs the selected experiments. Returns main's exit code. Errors: throws std::runtime_error with
/// a sentence for the user, or std::bad_alloc.
template <Benchmark Options>
int run_benchmark(const Options& options, const Output& output) {
  if (const auto problem = problem_of(options)) throw std::runtime_error(*problem);
  return run_experiments(Options::kBench, options, options.experiment_rows(), output);
}

/// Adds the command of a benchmark to `app`. Parsing runs nothing: see add_bench_commands().
template <Benchmark Options>
void add_benchmark(CLI::App& app, const Output& output, cmdline::Action& chosen) {
  CLI::App& command = *app.add_subcommand(Options::kBench, Options::kSummary);
  const auto options = std::make_shared<Options>();
  OptionRows rows(command);
  declare_experiments(rows, *options, options->experiment_rows());
  options->declare(rows);
  choose(command, options, output, chosen, run_benchmark<Options>);
}

}  // namespace espalier::bench
