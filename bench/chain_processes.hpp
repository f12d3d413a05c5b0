// SPDX-License-Identifier: Apache-2.0
// Nodes with data folders, each in a process of its own, for a client: a single node, or a chain
// (docs/chains.md).
//
// Thread: one. While this forks, nothing else in this process may hold a lock that a node needs.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/temporary_folder.hpp"
#include "bench/point_run.hpp"
#include "espalier/map.hpp"
#include "node/config.hpp"

namespace espalier::bench {

struct ChainSetting {
  std::filesystem::path dir;  ///< below which a folder is made
  std::uint32_t nodes = 3;    ///< 1: it is in no chain
  std::uint32_t fence_ms = 1000;
  std::string etcd;  ///< endpoints that keep the chain, HOST:PORT,HOST:PORT; empty: a file does
};

class ChainProcesses {
 public:
  /// Errors: throws std::runtime_error.
  explicit ChainProcesses(const ChainSetting& setting);
  /// Kills them.
  ~ChainProcesses();
  ChainProcesses(const ChainProcesses&) = delete;
  ChainProcesses& operator=(const ChainProcesses&) = delete;

  /// Waits until it serves, a minute at most. Errors: throws std::runtime_error.
  [[nodiscard]] Store connect() const;
  /// As kill -9 does. Requires: it was not killed before.
  void kill(std::size_t node);
  /// Processor time that all of them have had.
  [[nodiscard]] std::uint64_t cpu_ns() const;

 private:
  void start(const node::Config& config);

  base::TemporaryFolder folder_;
  std::string address_;
  std::vector<std::optional<pid_t>> processes_;
};

struct ChainWrites {
  ChainSetting setting;
  std::uint32_t in_flight = 256;
  std::uint32_t value_bytes = 100;
  std::uint64_t keys = 100'000;
  std::uint64_t ops = 0;
  std::uint64_t seed = 1;
};

/// Puts, so many in flight, and what the processors of all nodes took for each that was
/// acknowledged. The checksum is of what is there in the end. Errors: throws std::runtime_error.
[[nodiscard]] PointSample measure_chain_writes(const ChainWrites& writes);

/// A client counts in a hash map, one put after the other; the head is killed meanwhile. Latencies
/// are those of puts with all that was repeated of them, and `longest_pause_ms` the longest.
/// Errors: throws std::runtime_error, also where the count is lost.
[[nodiscard]] PointSample measure_failover(const ChainSetting& setting, std::uint64_t puts);

}  // namespace espalier::bench
