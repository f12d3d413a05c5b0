// SPDX-License-Identifier: Apache-2.0
#include "bench/benchmark.hpp"

#include <algorithm>

namespace espalier::bench {
namespace {

// Rows may share a name.
std::vector<std::string_view> names_of(const std::vector<ExperimentRow>& experiments,
                                       bool only_named) {
  std::vector<std::string_view> names;
  for (const ExperimentRow& row : experiments) {
    if (only_named && !row.only_named) continue;
    if (std::ranges::count(names, row.name) == 0) names.push_back(row.name);
  }
  return names;
}

}  // namespace

void declare_experiments(OptionRows& rows, PointOptions& options,
                         const std::vector<ExperimentRow>& experiments) {
  const auto names = names_of(experiments, false);
  if (names.size() < 2) return;
  const auto but = names_of(experiments, true);
  rows.texts("--experiment", options.experiments,
             fmt::format("{}; by default all{}{}", fmt::join(names, ", "),
                         but.empty() ? "" : " but ", fmt::join(but, " and ")));
  rows.require_none(problem_of_experiments(options.experiments, names));
}

int run_experiments(std::string_view bench, const PointOptions& options,
                    const std::vector<ExperimentRow>& experiments, const Output& output) {
  Report report(bench, options.json, output);
  PointRun run(options, report);
  for (const ExperimentRow& row : experiments) {
    const bool named = std::ranges::count(options.experiments, row.name) != 0;
    if (!named && (row.only_named || !options.experiments.empty())) continue;
    const std::uint64_t before = report.measured();
    if (row.points) {
      run.run(row.name, row.points(report));
    } else {
      row.lines(report);
    }
    if (named && report.measured() == before) report.say_nothing_measured(row.name);
  }
  return report.finish();
}

}  // namespace espalier::bench
