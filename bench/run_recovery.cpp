// SPDX-License-Identifier: Apache-2.0
#include "bench/run_recovery.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "bench/recovery_data.hpp"

namespace espalier::bench {
namespace {

MeasuredPoint recovery_point(const RecoverySetting& setting, std::uint32_t threads,
                             const std::shared_ptr<std::unique_ptr<RecoveryData>>& data,
                             const std::filesystem::path& dir) {
  MeasuredPoint point;
  point.target = "node";
  point.workload = "start";
  point.parameters["from"] = name(setting.from);
  point.parameters["keys"] = setting.keys;
  point.parameters["value_bytes"] = setting.value_bytes;
  point.parameters["maps"] = setting.maps;
  point.parameters["recovery_threads"] = threads;
  point.threads = threads + 1;
  point.answers = fmt::format("{} keys in {} maps", setting.keys, setting.maps);
  point.measure = [setting, threads, data, dir] {
    if (*data == nullptr) *data = std::make_unique<RecoveryData>(dir, setting);
    PointSample sample = (*data)->start(threads);
    if (sample.checksum != (*data)->contents().hash) sample.checksum = ~sample.checksum;
    return sample;
  };
  return point;
}

/// Points of one folder share it; it is made when it is first wanted.
std::vector<MeasuredPoint> recovery_points(const RecoveryBenchOptions& options,
                                           const RecoverySetting& setting) {
  const std::filesystem::path dir = options.dir.empty() ? std::filesystem::temp_directory_path()
                                                        : std::filesystem::path(options.dir);
  const auto data = std::make_shared<std::unique_ptr<RecoveryData>>();
  std::vector<MeasuredPoint> points;
  for (const std::uint32_t threads : options.threads) {
    points.push_back(recovery_point(setting, threads, data, dir));
  }
  return points;
}

}  // namespace

std::string_view name(RecoveryFrom from) {
  return from == RecoveryFrom::log ? "log" : "checkpoint";
}

std::optional<RecoveryFrom> parse_recovery_from(std::string_view text) {
  for (const RecoveryFrom from : {RecoveryFrom::log, RecoveryFrom::checkpoint}) {
    if (text == name(from)) return from;
  }
  return std::nullopt;
}

std::optional<std::string> problem_of(const RecoveryBenchOptions& options) {
  const auto outside = [](const auto& values, std::uint64_t most) {
    return values.empty() ||
           std::ranges::any_of(values, [=](auto value) { return value < 1 || value > most; });
  };
  if (outside(options.keys, 1'000'000'000)) return "--keys must be 1 to 1000000000";
  if (outside(options.maps, 64)) return "--maps must be 1 to 64";
  if (outside(options.threads, 16)) return "--threads must be 1 to 16";
  if (options.from.empty()) return "--from: log, checkpoint";
  if (options.value_bytes > (1U << 20)) return "--value-bytes must be 0 to 1048576";
  if (options.repeats < 1 || options.repeats > 1000) return "--repeat must be 1 to 1000";
  return std::nullopt;
}

int run_recovery(const RecoveryBenchOptions& options, const Output& output) {
  if (const auto problem = problem_of(options)) throw std::runtime_error(*problem);
  PointRun run("recovery", options, output);
  for (const std::uint64_t keys : options.keys) {
    for (const std::uint32_t maps : options.maps) {
      for (const RecoveryFrom from : options.from) {
        const RecoverySetting setting{keys, maps, from, options.value_bytes, options.seed};
        run.run("start", recovery_points(options, setting));
      }
    }
  }
  return run.finish();
}

}  // namespace espalier::bench
