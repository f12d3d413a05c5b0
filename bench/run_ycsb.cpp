// SPDX-License-Identifier: Apache-2.0
// The run of `espalier-bench ycsb`.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "bench/benchmark.hpp"
#include "bench/median.hpp"
#include "bench/run_lines.hpp"
#include "bench/runner.hpp"
#include "bench/ycsb_options.hpp"

namespace espalier::bench {
namespace {

// The total of all runs.
class Total {
 public:
  void add(const RunResult& result) {
    ops_per_s_[result.target].push_back(result.ops_per_s());
    ops_ += result.ops;
    if (!result.complete) return;
    if (compared_++ == 0) first_ = result;
    hashes_equal_ = hashes_equal_ && result.result_hash == first_.result_hash;
    states_equal_ = states_equal_ && result.contents == first_.contents;
  }

  [[nodiscard]] bool equal() const { return hashes_equal_ && states_equal_; }

  [[nodiscard]] Json to_json(const YcsbOptions& options) const {
    Json line;
    line["total"] = true;
    line["workload"] = name(options.workload);
    line["ops"] = ops_;
    for (const auto& [kind, values] : ops_per_s_) {
      line["median_ops_per_s"][std::string(name(kind))] = std::round(median_of(values));
    }
    for (const auto& [kind, ratio] : ratios()) {
      line["ratio_to_absl"][std::string(name(kind))] = std::round(ratio * 1000) / 1000;
    }
    line["compared_runs"] = compared_;
    line["result_hashes_equal"] = hashes_equal_;
    line["end_states_equal"] = states_equal_;
    return line;
  }

  [[nodiscard]] std::string sentence() const {
    std::string text = "total: " + short_number(static_cast<double>(ops_)) + " operations";
    for (const auto& [kind, values] : ops_per_s_) {
      text += fmt::format("; {} {}/s", name(kind), short_number(median_of(values)));
      const auto all = ratios();
      if (const auto at = all.find(kind); at != all.end() && kind != TargetKind::absl) {
        text += fmt::format(" ({:.2f} x absl)", at->second);
      }
    }
    if (!equal()) return text + "; THE ANSWERS OF TARGETS DIFFER";
    return text + (compared_ > 1 ? "; all answers equal" : "");
  }

 private:
  [[nodiscard]] std::map<TargetKind, double> ratios() const {
    std::map<TargetKind, double> result;
    const auto absl = ops_per_s_.find(TargetKind::absl);
    if (absl == ops_per_s_.end()) return result;
    const double base = median_of(absl->second);
    for (const auto& [kind, values] : ops_per_s_) {
      if (base > 0) result[kind] = median_of(values) / base;
    }
    return result;
  }

  std::map<TargetKind, std::vector<double>> ops_per_s_;
  std::uint64_t ops_ = 0;
  std::uint64_t compared_ = 0;  // runs that were complete
  RunResult first_;
  bool hashes_equal_ = true;
  bool states_equal_ = true;
};

std::string heading_of(const YcsbOptions& options, const Runner& runner) {
  const RequestPlan& plan = runner.plan();
  return fmt::format(
      "workload {}, {}, {} keys of {} B, values of {}{} B, {} ops, {} thread{}",
      name(plan.workload), name(plan.distribution), runner.keys().size(),
      runner.keys().fixed_bytes() == 0 ? "various" : std::to_string(options.key_bytes),
      plan.values.drawn ? "0 to " : "", plan.values.bytes, plan.ops, plan.threads,
      plan.threads == 1 ? "" : "s");
}

void run_workload(const YcsbOptions& options, Report& report) {
  report.progress().show("making keys");
  Runner runner(options, make_keys(options), report.progress());
  report.table(run_columns(), heading_of(options, runner));
  Total total;
  std::map<TargetKind, std::string> settings;
  for (std::uint32_t repeat = 0; repeat < options.repeats; ++repeat) {
    for (const TargetKind kind : options.targets) {
      const RunResult result = runner.run(kind, repeat);
      total.add(result);
      settings[kind] = fmt::format("{}; {}", result.settings, result.pages);
      report.line(to_json(result, options, runner.plan(), runner.keys()));
    }
  }
  for (const auto& [kind, text] : settings) {
    report.say(fmt::format("{}: {}", name(kind), text));
  }
  report.total(total.to_json(options), total.sentence());
  if (!total.equal()) report.differ();
}

}  // namespace

std::vector<ExperimentRow> YcsbOptions::experiment_rows() const {
  return {{"ycsb", {}, [this](Report& report) { run_workload(*this, report); }}};
}

}  // namespace espalier::bench
