// SPDX-License-Identifier: Apache-2.0
#include "bench/run_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "base/temporary_folder.hpp"
#include "bench/add_points.hpp"
#include "bench/beside_points.hpp"
#include "bench/commit_points.hpp"
#include "bench/placement_points.hpp"
#include "bench/runner.hpp"

namespace espalier::bench {
namespace {

constexpr std::array<std::string_view, 6> kLogExperiments{"commit", "apart",  "pairs",
                                                          "adds",   "beside", "placement"};
constexpr std::array kDurabilitiesMeasured{Durability::none, Durability::async, Durability::sync};
/// Of all records of a measurement: of longer ones there are fewer.
constexpr std::uint64_t kCommittedBytesMax = std::uint64_t{512} << 20;

std::filesystem::path folder_of(const LogBenchOptions& options) {
  return options.dir.empty() ? std::filesystem::temp_directory_path()
                             : std::filesystem::path(options.dir);
}

bool is_log(LogTarget target) {
  return target == LogTarget::log || target == LogTarget::model_pmem;
}

PointSample measure_commits(LogTarget target, const CommitSetting& setting) {
  switch (target) {
    case LogTarget::log: return measure_log_commits(setting);
    case LogTarget::rocksdb: return measure_rocksdb_commits(setting);
    case LogTarget::disk: return measure_disk_flushes(setting);
    case LogTarget::model_pmem: return measure_mapped_commits(setting);
  }
  return {};
}

/// RocksDB and the disk have one put or write of a thread at a time, once.
bool has_point(LogTarget target, const CommitSetting& setting, bool is_first) {
  return is_log(target) || (setting.in_flight == 1 && is_first);
}

MeasuredPoint commit_point(LogTarget target, const CommitSetting& setting) {
  MeasuredPoint point;
  point.target = name(target);
  point.workload = "commit";
  point.parameters["record_bytes"] = setting.record_bytes;
  point.parameters["writers"] = setting.writers;
  point.parameters["in_flight"] = setting.in_flight;
  if (is_log(target)) point.parameters["writes"] = setting.writes;
  point.threads = setting.writers + (is_log(target) ? 1 : 0);
  point.answers = target == LogTarget::disk ? fmt::format("{} flushes", setting.ops)
                                            : fmt::format("{} records", setting.ops);
  point.measure = [target, setting] { return measure_commits(target, setting); };
  return point;
}

std::vector<MeasuredPoint> commit_points(const LogBenchOptions& options) {
  std::vector<MeasuredPoint> points;
  for (const std::uint32_t record_bytes : options.record_bytes) {
    for (const std::uint32_t writers : options.writers) {
      for (const std::uint32_t in_flight : options.in_flight) {
        const std::uint64_t ops =
            std::clamp<std::uint64_t>(kCommittedBytesMax / record_bytes, writers, options.ops);
        CommitSetting setting{folder_of(options), record_bytes, writers, in_flight, ops};
        for (const std::uint32_t writes : options.writes) {
          setting.writes = writes;
          const bool is_first = writes == options.writes.front();
          for (const LogTarget target : options.targets) {
            if (has_point(target, setting, is_first)) {
              points.push_back(commit_point(target, setting));
            }
          }
        }
      }
    }
  }
  return points;
}

std::vector<MeasuredPoint> apart_points(const LogBenchOptions& options) {
  std::vector<MeasuredPoint> points;
  for (const std::uint32_t gap_us : options.gap_us) {
    for (const std::uint32_t writes : options.writes) {
      CommitSetting setting{folder_of(options), options.record_bytes.front(), 1, 1, options.ops};
      setting.writes = writes;
      setting.gap_us = gap_us;
      MeasuredPoint point;
      point.target = name(LogTarget::log);
      point.workload = "apart";
      point.parameters["record_bytes"] = setting.record_bytes;
      point.parameters["gap_us"] = gap_us;
      point.parameters["writes"] = writes;
      point.threads = 2;
      point.answers = fmt::format("{} records", setting.ops);
      point.measure = [setting] { return measure_log_arrivals(setting); };
      points.push_back(std::move(point));
    }
  }
  return points;
}

PointSample measure_pairs(const LogBenchOptions& options, Workload workload,
                          Durability durability) {
  const base::TemporaryFolder place(folder_of(options));
  YcsbOptions run;
  run.targets = {TargetKind::node};
  run.transport = NodeTransport::shm;
  run.workload = workload;
  run.keys = options.keys;
  run.value_bytes = options.value_bytes;
  run.in_flight = options.pairs_in_flight;
  run.seed = options.seed;
  run.probe_rounds = 0;
  if (workload == Workload::a) run.ops = options.keys;
  run.durability = durability;
  if (durability != Durability::none) run.data_dir = (place / "data").string();
  std::ostringstream nowhere;
  Progress silent(Output{nowhere, nowhere});
  Runner runner(run, make_keys(run), silent);
  const RunResult result = runner.run(TargetKind::node, 0);
  PointSample sample;
  sample.took(result.ops, result.seconds);
  sample.latencies = result.latencies;
  sample.numbers.emplace_back("bytes_per_item", result.bytes_per_item);
  sample.checksum = result.contents.hash;
  return sample;
}

std::vector<MeasuredPoint> pairs_points(const LogBenchOptions& options) {
  std::vector<MeasuredPoint> points;
  for (const Workload workload : {Workload::load, Workload::a}) {
    for (const Durability durability : kDurabilitiesMeasured) {
      MeasuredPoint point;
      point.target = "node";
      point.workload = name(workload);
      point.parameters["durability"] = name(durability);
      point.parameters["keys"] = options.keys;
      point.parameters["value_bytes"] = options.value_bytes;
      point.parameters["in_flight"] = options.pairs_in_flight;
      point.threads = durability != Durability::none ? 3 : 2;
      point.answers = point.workload;
      point.measure = [&options, workload, durability] {
        return measure_pairs(options, workload, durability);
      };
      points.push_back(std::move(point));
    }
  }
  return points;
}

/// Flushes take longer than adds.
constexpr std::uint64_t kFlushesBesideAdds = 4000;
constexpr std::uint32_t kAddRecordBytes = 100;

std::vector<MeasuredPoint> add_points(const LogBenchOptions& options) {
  std::vector<MeasuredPoint> points;
  for (const ObjectKind kind : {ObjectKind::map, ObjectKind::hash}) {
    for (const Durability durability : kDurabilitiesMeasured) {
      const AddSetting setting{folder_of(options), kind, durability, options.pairs_in_flight,
                               options.ops};
      MeasuredPoint point;
      point.target = name(kind);
      point.workload = "adds";
      point.parameters["durability"] = name(durability);
      point.parameters["in_flight"] = setting.in_flight;
      point.threads = durability != Durability::none ? 3 : 2;
      point.answers = fmt::format("{} adds", setting.ops);
      point.measure = [setting] { return measure_adds(setting); };
      points.push_back(std::move(point));
    }
  }
  // What adds in sync are compared with.
  const std::uint64_t flushes = std::min<std::uint64_t>(options.ops, kFlushesBesideAdds);
  points.push_back(
      commit_point(LogTarget::disk, {folder_of(options), kAddRecordBytes, 1, 1, flushes}));
  return points;
}

std::vector<MeasuredPoint> beside_points(const LogBenchOptions& options) {
  const auto reads = std::make_shared<std::unique_ptr<DurableReads>>();
  std::vector<MeasuredPoint> points;
  for (const Beside beside : {Beside::nothing, Beside::puts, Beside::checkpoint, Beside::stopped}) {
    if (beside == Beside::stopped && !options.stop_disk) continue;
    MeasuredPoint point;
    point.target = "node";
    point.workload = "gets";
    point.parameters["beside"] = name(beside);
    point.parameters["keys"] = options.keys;
    point.parameters["value_bytes"] = options.value_bytes;
    point.threads = beside == Beside::nothing ? 2 : 3;
    point.answers = "gets";
    point.measure = [&options, reads, beside] {
      if (*reads == nullptr) {
        *reads = std::make_unique<DurableReads>(folder_of(options), options.keys,
                                                options.value_bytes, options.seed);
      }
      return (*reads)->measure(beside, options.ops);
    };
    points.push_back(std::move(point));
  }
  return points;
}

std::vector<MeasuredPoint> placement_points(const LogBenchOptions& options) {
  using fabric::MemoryKind;
  using enum fabric::PlacementPolicy;
  std::vector<MeasuredPoint> points;
  for (const std::uint32_t region_bytes : options.region_bytes) {
    for (const std::uint32_t record_bytes : options.placed_bytes) {
      for (const bool sequential : {false, true}) {
        for (const MemoryKind kind : {MemoryKind::volatile_memory, MemoryKind::persistent}) {
          for (const fabric::PlacementPolicy policy : {adaptive, cache, memory}) {
            const PlacementSetting setting{kind,         policy,       sequential,
                                           record_bytes, region_bytes, options.cache_bytes,
                                           options.ops,  options.seed};
            MeasuredPoint point;
            point.target = fabric::name(policy);
            point.workload = sequential ? "sequential" : "random";
            point.parameters["memory"] = name(kind);
            point.parameters["record_bytes"] = record_bytes;
            point.parameters["region_bytes"] = region_bytes;
            point.parameters["model_cache_bytes"] = options.cache_bytes;
            point.parameters["model_arrival_gb_per_s"] = kModelledArrivalGb;
            point.answers =
                fmt::format("{} of {} in {}", point.workload, record_bytes, region_bytes);
            point.measure = [setting] { return measure_placement(setting); };
            points.push_back(std::move(point));
          }
        }
      }
    }
  }
  return points;
}

/// What is wrong with sizes that must fit into each other.
std::optional<std::string> problem_of_placement(const LogBenchOptions& options) {
  const auto is_size = [](std::uint64_t bytes) { return std::has_single_bit(bytes); };
  const bool records = !options.placed_bytes.empty() &&
                       std::ranges::all_of(options.placed_bytes, [&](std::uint32_t bytes) {
                         return is_size(bytes) && bytes >= 64 && bytes <= (1U << 20);
                       });
  if (!records) return "--placed-bytes must be powers of two, 64 to 1048576";
  constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 30;
  const bool regions = !options.region_bytes.empty() &&
                       std::ranges::all_of(options.region_bytes, [&](std::uint32_t bytes) {
                         return is_size(bytes) && bytes >= (1U << 20) && bytes <= kBytesMax;
                       });
  if (!regions) return "--region-bytes must be powers of two, 1048576 to 1073741824";
  if (options.cache_bytes < 4096 || options.cache_bytes > kBytesMax) {
    return "--cache-bytes must be 4096 to 1073741824";
  }
  return std::nullopt;
}

}  // namespace

std::string_view name(LogTarget target) {
  switch (target) {
    case LogTarget::log: return "log";
    case LogTarget::rocksdb: return "rocksdb";
    case LogTarget::disk: return "disk";
    case LogTarget::model_pmem: return "model_pmem";
  }
  return "?";
}

std::optional<LogTarget> parse_log_target(std::string_view text) {
  for (const LogTarget target :
       {LogTarget::log, LogTarget::rocksdb, LogTarget::disk, LogTarget::model_pmem}) {
    if (text == name(target)) return target;
  }
  return std::nullopt;
}

std::string log_experiment_names() { return fmt::format("{}", fmt::join(kLogExperiments, ", ")); }

std::optional<std::string> problem_of(const LogBenchOptions& options) {
  const auto outside = [](const std::vector<std::uint32_t>& values, std::uint32_t least,
                          std::uint32_t most) {
    return values.empty() || std::ranges::any_of(values, [=](std::uint32_t value) {
             return value < least || value > most;
           });
  };
  if (auto problem = problem_of_experiments(options.experiments, kLogExperiments)) return problem;
  if (options.targets.empty()) return "--target: log, rocksdb, disk, model_pmem";
  if (outside(options.record_bytes, 8, 1U << 20)) return "--record-bytes must be 8 to 1048576";
  if (outside(options.writers, 1, 256)) return "--writers must be 1 to 256";
  if (outside(options.in_flight, 1, 4096)) return "--in-flight must be 1 to 4096";
  if (outside(options.writes, 1, 16)) return "--writes must be 1 to 16";
  if (outside(options.gap_us, 1, 100'000)) return "--gap-us must be 1 to 100000";
  if (options.ops < 256 || options.ops > 1'000'000'000) return "--ops must be 256 to 1000000000";
  if (options.keys < 4 || options.keys > 1'000'000'000) return "--keys must be 4 to 1000000000";
  if (options.value_bytes > (1U << 20)) return "--value-bytes must be 0 to 1048576";
  if (options.pairs_in_flight < 1 || options.pairs_in_flight > 256) {
    return "--pairs-in-flight must be 1 to 256";
  }
  if (auto problem = problem_of_placement(options)) return problem;
  if (options.repeats < 1 || options.repeats > 1000) return "--repeat must be 1 to 1000";
  if (options.stop_disk) {
    if (const char* const problem = problem_of_stopping(options.dir)) return problem;
  }
  return std::nullopt;
}

int run_log(const LogBenchOptions& options, const Output& output) {
  if (const auto problem = problem_of(options)) throw std::runtime_error(*problem);
  PointRun run("log", options, output);
  if (is_chosen(options.experiments, "commit")) run.run("commit", commit_points(options));
  if (is_chosen(options.experiments, "apart")) run.run("apart", apart_points(options));
  if (is_chosen(options.experiments, "pairs")) run.run("pairs", pairs_points(options));
  if (is_chosen(options.experiments, "adds")) run.run("adds", add_points(options));
  if (is_chosen(options.experiments, "beside")) run.run("beside", beside_points(options));
  if (is_chosen(options.experiments, "placement")) {
    run.run("placement", placement_points(options));
  }
  return run.finish();
}

}  // namespace espalier::bench
