// SPDX-License-Identifier: Apache-2.0
// The experiments of `espalier-bench device` that run workloads: ycsb and miss. The same requests
// go every way (bench/runner.hpp), and their answers are compared.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/progress.hpp"
#include "bench/report.hpp"
#include "bench/run_device.hpp"
#include "bench/runner.hpp"

namespace espalier::bench {

class DeviceWorkloads {
 public:
  /// `options` and `output` outlive it. Errors: throws std::runtime_error.
  DeviceWorkloads(const DeviceBenchOptions& options, const Output& output);

  void run_ycsb();
  void run_miss();

  [[nodiscard]] std::uint64_t measurements() const { return count_; }
  /// Whether all ways gave the same answers and left the same map behind.
  [[nodiscard]] bool equal() const { return equal_; }

 private:
  struct Point {
    std::string_view experiment;
    std::string label;  // of a table; points of one label must have the same answers
    YcsbOptions options;
  };
  void run(const Point& point);
  void compare(const Point& point, const RunResult& result);
  void report(const Point& point, const Runner& runner, const RunResult& result);
  [[nodiscard]] Json line_of(const Point& point, const Runner& runner,
                             const RunResult& result) const;

  const DeviceBenchOptions& options_;
  const Output& output_;
  Progress progress_;
  YcsbOptions base_;
  std::shared_ptr<const KeySet> keys_;
  Table table_;
  std::map<std::string, RunResult> first_;  // by label
  std::uint64_t count_ = 0;
  bool equal_ = true;
};

/// Sizes of a device's cache for a map of so many keys, from one that knows no way to one that
/// knows them all.
[[nodiscard]] std::vector<std::uint64_t> caches_that_miss(const DeviceBenchOptions& options);

}  // namespace espalier::bench
