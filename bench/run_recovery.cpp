// SPDX-License-Identifier: Apache-2.0
#include "bench/run_recovery.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "bench/benchmark.hpp"
#include "bench/recovery_data.hpp"

namespace espalier::bench {
namespace {

MeasuredPoint recovery_point(const RecoverySetting& setting, std::uint32_t threads,
                             const std::shared_ptr<std::unique_ptr<RecoveryData>>& data,
                             const std::filesystem::path& dir) {
  return {.target = "node",
          .workload = "start",
          .parameters = {{"from", name(setting.from)},
                         {"keys", setting.keys},
                         {"value_bytes", setting.value_bytes},
                         {"maps", setting.maps},
                         {"recovery_threads", threads}},
          .threads = threads + 1,
          .answers = fmt::format("{} keys in {} maps", setting.keys, setting.maps),
          .measure = [setting, threads, data, dir] {
            if (*data == nullptr) *data = std::make_unique<RecoveryData>(dir, setting);
            PointSample sample = (*data)->start(threads);
            if (sample.checksum != (*data)->contents().hash) sample.checksum = ~sample.checksum;
            return sample;
          }};
}

/// Points of one folder share it; it is made on first use.
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

void RecoveryBenchOptions::declare(OptionRows& rows) {
  rows.text("--dir", dir, kFolderHelp);
  rows.numbers("--keys", keys, {1, 1'000'000'000}, "pairs");
  rows.numbers("--maps", maps, {1, 64}, "that have them");
  rows.numbers("--threads", threads, {1, 16}, "that apply what is read");
  rows.choices("--from", from, parse_recovery_from, "log, checkpoint; both by default");
  rows.number("--value-bytes", value_bytes, {0, 1U << 20}, "of each value");
  rows.of_points(*this);
}

/// A row for each folder, since the next one is made when that is removed.
std::vector<ExperimentRow> RecoveryBenchOptions::experiment_rows() const {
  std::vector<ExperimentRow> rows;
  for (const std::uint64_t pairs : keys) {
    for (const std::uint32_t count : maps) {
      for (const RecoveryFrom source : from) {
        const RecoverySetting setting{pairs, count, source, value_bytes, seed};
        rows.push_back(
            {"start", [this, setting](Report&) { return recovery_points(*this, setting); }});
      }
    }
  }
  return rows;
}

}  // namespace espalier::bench
