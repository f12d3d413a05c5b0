// SPDX-License-Identifier: Apache-2.0
// Experiments that are lists of points: one measurement each, with its parameters.
//
// With several repeats an experiment runs through all of its points repeatedly, so that a change of
// the machine affects all of them. Every run is a line; the medians come last.
//
// Thread: one at a time; points start threads of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/histogram.hpp"
#include "bench/point_options.hpp"
#include "bench/report.hpp"

namespace espalier::bench {

/// The result of one run of a point.
struct PointSample {
  std::uint64_t ops = 0;
  double seconds = 0;
  double ns_per_op = 0;       ///< for one thread: a writer, if there are no readers
  base::Histogram latencies;  ///< empty where none are taken
  /// Further numbers of this kind of point, by key; the same keys in each run of a point.
  std::vector<std::pair<std::string, double>> numbers;
  std::uint64_t checksum = 0;
  bool complete = true;  ///< false: time was up

  /// Records that so many operations took so long, on one thread.
  void took(std::uint64_t operations, double time_s) {
    ops = operations;
    seconds = time_s;
    ns_per_op = operations == 0 ? 0 : time_s * 1e9 / static_cast<double>(operations);
  }
};

/// One measurement. Points with the same text in `answers` must have the same checksum.
struct MeasuredPoint {
  std::string target = "machine";
  std::string workload{};
  Json parameters{};
  std::uint32_t threads = 1;
  std::string answers{};
  std::function<PointSample()> measure{};
};

/// Runs such a measurement on a pinned thread of its own.
[[nodiscard]] std::function<PointSample()> pinned(std::function<PointSample()> measure);

/// Whether this experiment is selected: by name, or because none was named.
[[nodiscard]] bool is_chosen(const std::vector<std::string>& experiments, std::string_view name);
/// What is wrong with the named experiments, in one sentence; nothing: all exist.
[[nodiscard]] std::optional<std::string> problem_of_experiments(
    const std::vector<std::string>& experiments, std::span<const std::string_view> names);

class PointRun {
 public:
  /// `options` and `report` must outlive it.
  PointRun(const PointOptions& options, Report& report);

  /// Measures all points of an experiment and prints the results. Errors: what a point throws.
  void run(std::string_view experiment, const std::vector<MeasuredPoint>& points);

 private:
  struct Medians;

  void measure(std::string_view experiment, const MeasuredPoint& point, std::uint32_t repeat,
               Medians& medians);
  [[nodiscard]] bool is_equal(std::string_view experiment, const MeasuredPoint& point,
                              const PointSample& sample);
  [[nodiscard]] Json new_line(std::string_view experiment, const MeasuredPoint& point) const;
  void print_medians(std::string_view experiment, const std::vector<MeasuredPoint>& points,
                     const std::vector<Medians>& medians) const;
  void print_median_line(std::string_view experiment, const MeasuredPoint& point,
                         const Medians& medians) const;
  [[nodiscard]] std::vector<std::string> median_cells(const MeasuredPoint& point,
                                                      const Medians& medians) const;
  [[nodiscard]] bool crowded(const MeasuredPoint& point) const { return point.threads > cores_; }

  Report& report_;
  const PointOptions& options_;
  std::size_t cores_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> checksums_;
};

}  // namespace espalier::bench
