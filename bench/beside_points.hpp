// SPDX-License-Identifier: Apache-2.0
// Gets of a durable node while its disk is busy: a part of `espalier-bench log`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "base/temporary_folder.hpp"
#include "bench/point_run.hpp"
#include "bench/read_load.hpp"
#include "espalier/map.hpp"
#include "node/node.hpp"

namespace espalier::bench {

/// The load beside gets.
enum class Beside : std::uint8_t {
  nothing,
  puts,        // by another thread, 16 in flight
  checkpoint,  // one after another
  stopped,     // these puts, on a stopped disk
};

[[nodiscard]] std::string_view name(Beside beside);

/// A node with a data folder and a filled map. Thread: one at a time.
class DurableReads {
 public:
  /// Errors: throws std::runtime_error.
  DurableReads(const std::filesystem::path& dir, std::uint64_t keys, std::uint64_t value_bytes,
               std::uint64_t seed);

  /// Gets one at a time, at least `ops` of them, all during the load. To stop the disk, `dir` must
  /// be the mount point of a file system of its own, which this process may freeze. Errors: throws
  /// std::runtime_error.
  [[nodiscard]] PointSample measure(Beside beside, std::uint64_t ops);

 private:
  void get_some(base::Histogram& latencies);
  void get_beside_checkpoints(std::uint64_t ops, base::Histogram& latencies);

  const std::filesystem::path dir_;
  base::TemporaryFolder place_;
  ReadLoad load_;
  std::unique_ptr<node::Node> node_;
  Store store_;
  Map map_;
  std::uint64_t round_ = 0;
};

/// Why the file system mounted here cannot be stopped; null: it can.
[[nodiscard]] const char* problem_of_stopping(const std::filesystem::path& dir);

}  // namespace espalier::bench
