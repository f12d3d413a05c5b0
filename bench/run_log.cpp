// SPDX-License-Identifier: Apache-2.0
#include "bench/run_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <memory>
#include <sstream>
#include <utility>

#include "base/temporary_folder.hpp"
#include "bench/add_points.hpp"
#include "bench/benchmark.hpp"
#include "bench/beside_points.hpp"
#include "bench/commit_points.hpp"
#include "bench/placement_points.hpp"
#include "bench/runner.hpp"

namespace espalier::bench {
namespace {

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

/// RocksDB and the disk have one put or write of a thread at a time, and only in the first variant.
bool has_point(LogTarget target, const CommitSetting& setting, bool is_first) {
  return is_log(target) || (setting.in_flight == 1 && is_first);
}

MeasuredPoint commit_point(LogTarget target, const CommitSetting& setting) {
  Json parameters{{"record_bytes", setting.record_bytes},
                  {"writers", setting.writers},
                  {"in_flight", setting.in_flight}};
  if (is_log(target)) parameters["writes"] = setting.writes;
  return {.target = std::string(name(target)),
          .workload = "commit",
          .parameters = std::move(parameters),
          .threads = setting.writers + (is_log(target) ? 1 : 0),
          .answers =
              fmt::format("{} {}", setting.ops, target == LogTarget::disk ? "flushes" : "records"),
          .measure = [target, setting] { return measure_commits(target, setting); }};
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
      points.push_back({.target = std::string(name(LogTarget::log)),
                        .workload = "apart",
                        .parameters = {{"record_bytes", setting.record_bytes},
                                       {"gap_us", gap_us},
                                       {"writes", writes}},
                        .threads = 2,
                        .answers = fmt::format("{} records", setting.ops),
                        .measure = [setting] { return measure_log_arrivals(setting); }});
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
      points.push_back({.target = "node",
                        .workload = std::string(name(workload)),
                        .parameters = {{"durability", name(durability)},
                                       {"keys", options.keys},
                                       {"value_bytes", options.value_bytes},
                                       {"in_flight", options.pairs_in_flight}},
                        .threads = durability != Durability::none ? 3U : 2U,
                        .answers = std::string(name(workload)),
                        .measure = [&options, workload, durability] {
                          return measure_pairs(options, workload, durability);
                        }});
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
      points.push_back(
          {.target = std::string(name(kind)),
           .workload = "adds",
           .parameters = {{"durability", name(durability)}, {"in_flight", setting.in_flight}},
           .threads = durability != Durability::none ? 3U : 2U,
           .answers = fmt::format("{} adds", setting.ops),
           .measure = [setting] { return measure_adds(setting); }});
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
    points.push_back({.target = "node",
                      .workload = "gets",
                      .parameters = {{"beside", name(beside)},
                                     {"keys", options.keys},
                                     {"value_bytes", options.value_bytes}},
                      .threads = beside == Beside::nothing ? 2U : 3U,
                      .answers = "gets",
                      .measure = [&options, reads, beside] {
                        if (*reads == nullptr) {
                          *reads = std::make_unique<DurableReads>(
                              folder_of(options), options.keys, options.value_bytes, options.seed);
                        }
                        return (*reads)->measure(beside, options.ops);
                      }});
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
            const char* const order = sequential ? "sequential" : "random";
            points.push_back(
                {.target = std::string(fabric::name(policy)),
                 .workload = order,
                 .parameters = {{"memory", name(kind)},
                                {"record_bytes", record_bytes},
                                {"region_bytes", region_bytes},
                                {"model_cache_bytes", options.cache_bytes},
                                {"model_arrival_gb_per_s", kModelledArrivalGb}},
                 .answers = fmt::format("{} of {} in {}", order, record_bytes, region_bytes),
                 .measure = [setting] { return measure_placement(setting); }});
          }
        }
      }
    }
  }
  return points;
}

void declare_placement(OptionRows& rows, LogBenchOptions& options) {
  constexpr std::uint32_t kBytesMax = 1U << 30;
  const auto is_size = [](std::uint64_t bytes) { return std::has_single_bit(bytes); };
  rows.numbers("--placed-bytes", options.placed_bytes, {64, 1U << 20},
               "sizes of records (placement)");
  rows.require(std::ranges::all_of(options.placed_bytes, is_size),
               "--placed-bytes must be powers of two, 64 to 1048576");
  rows.numbers("--region-bytes", options.region_bytes, {1U << 20, kBytesMax},
               "of the memory that they go to (placement)");
  rows.require(std::ranges::all_of(options.region_bytes, is_size),
               "--region-bytes must be powers of two, 1048576 to 1073741824");
  rows.number("--cache-bytes", options.cache_bytes, {4096, kBytesMax},
              "of the modelled cache (placement)");
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

void LogBenchOptions::declare(OptionRows& rows) {
  rows.choices("--target", targets, parse_log_target,
               "log, rocksdb, disk, and model_pmem, a log in mapped files at /dev/shm; the first "
               "three by default (commit)");
  rows.text("--dir", dir, kFolderHelp);
  rows.numbers("--record-bytes", record_bytes, {8, 1U << 20},
               "sizes of records (commit; apart: the first)");
  rows.numbers("--writers", writers, {1, 256}, "threads (commit)");
  rows.numbers("--in-flight", in_flight, {1, 4096},
               "records of each writer that wait for the disk (commit, log alone)");
  rows.numbers("--writes", writes, {1, 16},
               "of the log, that are under way at a time (commit, apart)");
  rows.numbers("--gap-us", gap_us, {1, 100'000},
               "microseconds from one record to the next (apart)");
  rows.number("--ops", ops, {256, 1'000'000'000},
              "records of a measurement, of long ones fewer (commit); adds; gets (beside)");
  rows.number("--keys", keys, {4, 1'000'000'000}, "pairs that are loaded (pairs, beside)");
  rows.number("--value-bytes", value_bytes, {0, 1U << 20}, "of each value (pairs, beside)");
  rows.number("--pairs-in-flight", pairs_in_flight, {1, 256},
              "requests of the client that are in flight (pairs, adds)");
  declare_placement(rows, *this);
  rows.flag("--stop-disk", stop_disk,
            "freeze the file system that is mounted at --dir for as long as a point takes: nothing "
            "else may use it (beside)");
  rows.of_points(*this);
  if (const char* const problem = stop_disk ? problem_of_stopping(dir) : nullptr) {
    rows.require(false, problem);
  }
}

std::vector<ExperimentRow> LogBenchOptions::experiment_rows() const {
  using Points = std::vector<MeasuredPoint> (*)(const LogBenchOptions&);
  const auto of = [this](Points points) {
    return [this, points](Report&) { return points(*this); };
  };
  return {{"commit", of(commit_points)}, {"apart", of(apart_points)},
          {"pairs", of(pairs_points)},   {"adds", of(add_points)},
          {"beside", of(beside_points)}, {"placement", of(placement_points)}};
}

}  // namespace espalier::bench
