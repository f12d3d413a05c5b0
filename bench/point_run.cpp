// SPDX-License-Identifier: Apache-2.0
#include "bench/point_run.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/cpu.hpp"
#include "bench/median.hpp"
#include "bench/probe.hpp"

namespace espalier::bench {
namespace {

// Numbers of one kind, from all repeats.
class Series {
 public:
  void add(std::optional<double> value) {
    if (value) values_.push_back(*value);
  }
  [[nodiscard]] std::optional<double> median() const {
    if (values_.empty()) return std::nullopt;
    return median_of(values_);
  }

 private:
  std::vector<double> values_;
};

struct Percentile {
  const char* key;
  double share;
};
constexpr std::array<Percentile, 3> kPercentiles{
    {{"ns_p50", 0.5}, {"ns_p99", 0.99}, {"ns_p999", 0.999}}};

std::string parameters_label(const MeasuredPoint& point) {
  std::string label;
  for (const auto& [key, value] : point.parameters.items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    label += fmt::format("{}{}={}", label.empty() ? "" : " ", key, text);
  }
  return label;
}

}  // namespace

// The medians of all repeats of a point.
struct PointRun::Medians {
  Series ops_per_s;
  Series ns_per_op;
  std::array<Series, kPercentiles.size()> percentiles;
  std::vector<std::pair<std::string, Series>> numbers;
  Series probe_before;
  Series probe_after;
  std::uint64_t incomplete = 0;

  void add(const PointSample& sample) {
    ns_per_op.add(sample.ns_per_op);
    if (sample.latencies.count() > 0) {
      for (std::size_t i = 0; i < kPercentiles.size(); ++i) {
        percentiles[i].add(static_cast<double>(sample.latencies.percentile(kPercentiles[i].share)));
      }
    }
    for (std::size_t i = 0; i < sample.numbers.size(); ++i) {
      if (i == numbers.size()) numbers.emplace_back(sample.numbers[i].first, Series());
      numbers[i].second.add(sample.numbers[i].second);
    }
    incomplete += sample.complete ? 0 : 1;
  }
};

std::function<PointSample()> pinned(std::function<PointSample()> measure) {
  return [measure = std::move(measure)] {
    PointSample sample;
    run_pinned([&] { sample = measure(); });
    return sample;
  };
}

bool is_chosen(const std::vector<std::string>& experiments, std::string_view name) {
  return experiments.empty() || std::ranges::count(experiments, name) > 0;
}

std::optional<std::string> problem_of_experiments(const std::vector<std::string>& experiments,
                                                  std::span<const std::string_view> names) {
  for (const std::string& experiment : experiments) {
    if (std::ranges::count(names, experiment) > 0) continue;
    return fmt::format("--experiment {}: there are {}", experiment, fmt::join(names, ", "));
  }
  return std::nullopt;
}

PointRun::PointRun(const PointOptions& options, Report& report)
    : report_(report), options_(options), cores_(base::usable_cores().size()) {}

void PointRun::run(std::string_view experiment, const std::vector<MeasuredPoint>& points) {
  std::vector<Medians> medians(points.size());
  for (std::uint32_t repeat = 0; repeat < options_.repeats; ++repeat) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      measure(experiment, points[i], repeat, medians[i]);
    }
  }
  report_.progress().clear();
  print_medians(experiment, points, medians);
}

void PointRun::measure(std::string_view experiment, const MeasuredPoint& point,
                       std::uint32_t repeat, Medians& medians) {
  report_.progress().show(fmt::format("{}: {} {}, repeat {}", experiment, point.workload,
                                      parameters_label(point), repeat));
  const auto probe_before = probe_ns(options_.probe_rounds);
  const PointSample sample = point.measure();
  const auto probe_after = probe_ns(options_.probe_rounds);
  const double rate = sample.seconds <= 0 ? 0 : static_cast<double>(sample.ops) / sample.seconds;
  medians.add(sample);
  medians.ops_per_s.add(rate);
  medians.probe_before.add(probe_before);
  medians.probe_after.add(probe_after);
  report_.compared(sample.ops, is_equal(experiment, point, sample));
  if (!options_.json) return;
  report_.progress().clear();
  Json line = new_line(experiment, point);
  line["repeat"] = repeat;
  line["ops"] = sample.ops;
  line["seconds"] = sample.seconds;
  line["ops_per_s"] = std::round(rate);
  line["ns_per_op"] = rounded(sample.ns_per_op);
  if (sample.latencies.count() > 0) {
    for (const auto& [key, share] : kPercentiles) line[key] = sample.latencies.percentile(share);
  }
  for (const auto& [key, value] : sample.numbers) line[key] = rounded(value);
  line["probe_ns"] = probes_json(probe_before, probe_after);
  line["complete"] = sample.complete;
  line["result_hash"] = hex(sample.checksum);
  print_line(report_.output().out, line);
}

bool PointRun::is_equal(std::string_view experiment, const MeasuredPoint& point,
                        const PointSample& sample) {
  if (!sample.complete) return true;
  const auto [at, first] =
      checksums_.emplace(std::pair(std::string(experiment), point.answers), sample.checksum);
  return first || at->second == sample.checksum;
}

Json PointRun::new_line(std::string_view experiment, const MeasuredPoint& point) const {
  Json line;
  line["bench"] = report_.bench();
  line["target"] = point.target;
  line["experiment"] = experiment;
  line["workload"] = point.workload;
  line.update(point.parameters);
  line["threads"] = point.threads;
  line["cores"] = cores_;
  line["crowded"] = crowded(point);
  line["seed"] = options_.seed;
  return line;
}

void PointRun::print_medians(std::string_view experiment, const std::vector<MeasuredPoint>& points,
                             const std::vector<Medians>& medians) const {
  Table table(report_.output().out, {{"target", -8},
                                     {"workload", -12},
                                     {"parameters", -56},
                                     {"ns/op", 8},
                                     {"ops/s", 8},
                                     {"p50 ns", 8},
                                     {"p99 ns", 8},
                                     {"p99.9 ns", 8},
                                     {"probe ns", 11},
                                     {"", -20}});
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (options_.json) {
      print_median_line(experiment, points[i], medians[i]);
    } else {
      table.row(median_cells(points[i], medians[i]));
    }
  }
}

void PointRun::print_median_line(std::string_view experiment, const MeasuredPoint& point,
                                 const Medians& medians) const {
  Json line = new_line(experiment, point);
  line["median_of"] = options_.repeats;
  line["ops_per_s"] = std::round(medians.ops_per_s.median().value_or(0));
  line["ns_per_op"] = rounded(medians.ns_per_op.median().value_or(0));
  for (std::size_t i = 0; i < kPercentiles.size(); ++i) {
    if (const auto median = medians.percentiles[i].median()) line[kPercentiles[i].key] = *median;
  }
  for (const auto& [key, series] : medians.numbers) {
    line[key] = rounded(series.median().value_or(0));
  }
  line["probe_ns"] = probes_json(medians.probe_before.median(), medians.probe_after.median());
  line["incomplete"] = medians.incomplete;
  print_line(report_.output().out, line);
}

std::vector<std::string> PointRun::median_cells(const MeasuredPoint& point,
                                                const Medians& medians) const {
  std::string remark = crowded(point) ? "shares cores" : "";
  if (medians.incomplete > 0) remark += " time was up";
  for (const auto& [key, series] : medians.numbers) {
    remark += fmt::format("{}{}={}", remark.empty() ? "" : " ", key,
                          rounded(series.median().value_or(0)));
  }
  std::vector<std::string> cells{point.target, point.workload, parameters_label(point),
                                 fmt::format("{:.2f}", medians.ns_per_op.median().value_or(0)),
                                 short_number(medians.ops_per_s.median().value_or(0))};
  for (const Series& percentile : medians.percentiles) {
    const auto median = percentile.median();
    cells.push_back(median ? fmt::format("{:.0f}", *median) : "-");
  }
  cells.push_back(probes_text(medians.probe_before.median(), medians.probe_after.median()));
  cells.push_back(remark);
  return cells;
}

}  // namespace espalier::bench
