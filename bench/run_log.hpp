// SPDX-License-Identifier: Apache-2.0
// `espalier-bench log`: records until they are durable, and requests of a node that wait for that.
//
//   commit   records of several sizes, writers and numbers in flight: by our log, by RocksDB's
//            (sync, with recycled files), and the disk's own flush of as many bytes
//   apart    records that come one by one, a gap apart, by as many writes of our log under way
//   pairs    loading a node's map, and YCSB-A, with a data folder (sync, async) and without (none)
//   adds     on one key of a map and of a hash map, many in flight, likewise
//   beside   gets of a node with a data folder, one at a time, beside puts, beside a checkpoint,
//            and beside a disk that takes no write
//   placement  records that a peer WRITEs into volatile and persistent memory, by policy: what is
//            counted of granules, and what a model of cache and memory counts
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/point_options.hpp"

namespace espalier::bench {

/// model_pmem: Espalier's log on persistent memory, emulated by tmpfs at /dev/shm.
enum class LogTarget : std::uint8_t { log, rocksdb, disk, model_pmem };

[[nodiscard]] std::string_view name(LogTarget target);
[[nodiscard]] std::optional<LogTarget> parse_log_target(std::string_view text);

struct LogBenchOptions : PointOptions {
  static constexpr const char* kBench = "log";
  static constexpr const char* kSummary = "commits to a disk, and writes that wait for them";

  std::vector<LogTarget> targets{LogTarget::log, LogTarget::rocksdb, LogTarget::disk};
  std::string dir;  ///< empty: that for temporary files
  std::vector<std::uint32_t> record_bytes{100, 4096, 65536};
  std::vector<std::uint32_t> writers{1, 2, 16};
  std::vector<std::uint32_t> in_flight{1, 8, 256};
  std::vector<std::uint32_t> writes{4};  ///< of the log, in flight
  std::vector<std::uint32_t> gap_us{20, 50, 100};
  std::uint64_t ops = 20'000;
  std::uint64_t keys = 1'000'000;
  std::uint32_t value_bytes = 100;
  std::uint32_t pairs_in_flight = 256;
  std::vector<std::uint32_t> placed_bytes{64, 256, 1024};
  std::vector<std::uint32_t> region_bytes{4U << 20, 64U << 20};
  std::uint64_t cache_bytes = std::uint64_t{8} << 20;  ///< of the modelled one
  bool stop_disk = false;  ///< --dir is the mount point of a file system of its own

  void declare(OptionRows& rows);
  [[nodiscard]] std::vector<ExperimentRow> experiment_rows() const;
};

}  // namespace espalier::bench
