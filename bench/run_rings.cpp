// SPDX-License-Identifier: Apache-2.0
#include "bench/run_rings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace espalier::bench {
namespace {

std::vector<MeasuredPoint> connection_points(const RingsOptions& options) {
  std::vector<MeasuredPoint> points = connected_points(options);
  for (MeasuredPoint& point : open_close_points(options)) points.push_back(std::move(point));
  return points;
}

struct RingsExperiment {
  std::string_view name;
  std::vector<MeasuredPoint> (*points)(const RingsOptions&);
};

constexpr std::array kRingsExperiments{
    RingsExperiment{"doorbell", doorbell_points},
    RingsExperiment{"noop", noop_points},
    RingsExperiment{"connections", connection_points},
    RingsExperiment{"sleep", sleep_points},
    RingsExperiment{"chase", chase_points},
};

constexpr std::uint32_t kRingsMax = 16384;  // 256 MiB of lines
constexpr std::uint32_t kIdleMax = 10'000;
constexpr std::uint64_t kOpenedMax = 10'000'000;
constexpr std::uint64_t kListNodesMax = std::uint64_t{1} << 32;  // 256 GiB
constexpr std::uint64_t kOpsMin = 64;
constexpr std::uint64_t kOpsMax = std::uint64_t{1} << 27;

constexpr auto kRingsExperimentNames = [] {
  std::array<std::string_view, kRingsExperiments.size()> names{};
  std::ranges::transform(kRingsExperiments, names.begin(), &RingsExperiment::name);
  return names;
}();

}  // namespace

std::string rings_experiment_names() {
  return fmt::to_string(fmt::join(kRingsExperimentNames, ", "));
}

std::optional<std::string> problem_of(const RingsOptions& options) {
  const auto outside = [](const std::vector<std::uint32_t>& values, std::uint32_t max) {
    return std::ranges::any_of(values, [max](std::uint32_t v) { return v < 1 || v > max; });
  };
  if (auto problem = problem_of_experiments(options.experiments, kRingsExperimentNames))
    return problem;
  if (outside(options.rings, kRingsMax)) return fmt::format("--rings must be 1 to {}", kRingsMax);
  if (outside(options.in_flight, 256)) return "--in-flight must be 1 to 256";
  if (std::ranges::any_of(options.payload_bytes, [](std::uint32_t v) { return v > 8192; })) {
    return "--payload-bytes must be 0 to 8192";
  }
  if (options.ops < kOpsMin || options.ops > kOpsMax) {
    return fmt::format("--ops must be {} to {}", kOpsMin, kOpsMax);
  }
  if (options.opened < 1 || options.opened > kOpenedMax) {
    return fmt::format("--opened must be 1 to {}", kOpenedMax);
  }
  if (std::ranges::any_of(options.idle, [](std::uint32_t v) { return v > kIdleMax; })) {
    return fmt::format("--idle must be 0 to {}", kIdleMax);
  }
  if (!(options.seconds >= 0 && options.seconds <= 3600)) return "--seconds must be 0 to 3600";
  if (options.list_nodes < 2 || options.list_nodes > kListNodesMax) {
    return fmt::format("--list-nodes must be 2 to {}", kListNodesMax);
  }
  if (options.repeats < 1) return "--repeat must be at least 1";
  return std::nullopt;
}

int run_rings(const RingsOptions& options, const Output& output) {
  if (const auto problem = problem_of(options)) throw std::runtime_error(*problem);
  PointRun run("rings", options, output);
  for (const RingsExperiment& experiment : kRingsExperiments) {
    if (!is_chosen(options.experiments, experiment.name)) continue;
    run.run(experiment.name, experiment.points(options));
  }
  return run.finish();
}

}  // namespace espalier::bench
