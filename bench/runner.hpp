// SPDX-License-Identifier: Apache-2.0
// Loads targets and runs the requests on them: one RunResult for each run.
//
// A run is: load (unless the workload begins empty), probe, measured part, latency part, probe.
// The measured part has no clock around single operations; the latency part runs further requests
// with one. A target whose contents a workload leaves as they were is loaded once and kept for the
// next rounds; else each run loads afresh.
//
// Thread: one at a time; a run starts threads of its own.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/progress.hpp"
#include "bench/request_list.hpp"
#include "bench/resident.hpp"
#include "bench/target.hpp"
#include "bench/ycsb_options.hpp"

namespace espalier::bench {

struct RunResult {
  TargetKind target = TargetKind::embedded;
  std::uint32_t repeat = 0;

  std::uint64_t ops = 0;  ///< measured ones, without the latency part
  double seconds = 0;
  std::uint64_t scanned_items = 0;
  std::optional<FeedNews> feed_news;   ///< since the map was made
  std::optional<PathTraffic> traffic;  ///< of all operations, including the latency part
  std::uint64_t all_ops = 0;           ///< of these
  Latencies latencies;
  bool complete = true;  ///< false: the time was up first, so hashes cannot be compared

  bool exact = true;  ///< what result_hash covers: see answers.hpp
  std::uint64_t result_hash = 0;
  Contents contents;  ///< at the end

  double load_ops_per_s = 0;     ///< 0: the workload itself loads
  double bytes_per_item = 0;     ///< growth of resident memory over the load
  std::uint64_t bytes_left = 0;  ///< growth of resident memory that is still there at the end
  std::string pages;
  std::string settings;
  std::optional<double> probe_before_ns;
  std::optional<double> probe_after_ns;

  [[nodiscard]] double ops_per_s() const { return rate(ops); }
  [[nodiscard]] double items_per_s() const { return rate(scanned_items); }

 private:
  [[nodiscard]] double rate(std::uint64_t count) const {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  }
};

class Runner {
 public:
  /// Makes all requests. Requires: `options` are valid (problem_of). Errors: throws
  /// std::runtime_error.
  Runner(const YcsbOptions& options, std::shared_ptr<const KeySet> keys, Progress& progress);

  /// Errors: throws std::runtime_error if the target cannot be made or an operation failed.
  RunResult run(TargetKind kind, std::uint32_t repeat);

  [[nodiscard]] const RequestPlan& plan() const { return plan_; }
  [[nodiscard]] const KeySet& keys() const { return *keys_; }

 private:
  // A loaded target, ready for the measured part.
  struct Loaded {
    std::unique_ptr<Target> target;
    Resident before;
    Resident after;
    double load_ops_per_s = 0;
    std::optional<Contents> contents;  // known from an earlier run that changed nothing
  };

  std::unique_ptr<Loaded> load(TargetKind kind);
  void load_keys(TargetKind kind, Loaded& loaded);
  void measure(Target& target, RunResult& result);
  void say(TargetKind kind, const std::string& what);

  YcsbOptions options_;
  std::shared_ptr<const KeySet> keys_;
  Progress& progress_;
  RequestPlan plan_;
  std::vector<RequestList> lists_;  // one for each thread
  std::map<TargetKind, std::unique_ptr<Loaded>> kept_;
};

}  // namespace espalier::bench
