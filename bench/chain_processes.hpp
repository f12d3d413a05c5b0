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
  std::filesystem::path dir;  ///< parent of the data folders
  std::uint32_t nodes = 3;    ///< 1: no chain
  std::uint32_t fence_ms = 1000;
  std::string etcd;  ///< endpoints that keep the chain, HOST:PORT,HOST:PORT; empty: a file
};

class ChainProcesses {
 public:
  /// Errors: throws std::runtime_error.
  explicit ChainProcesses(const ChainSetting& setting);
  /// Kills them.
  ~ChainProcesses();
  ChainProcesses(const ChainProcesses&) = delete;
  ChainProcesses& operator=(const ChainProcesses&) = delete;

  /// Waits until it serves, at most a minute. Errors: throws std::runtime_error.
  [[nodiscard]] Store connect() const;
  /// Sends SIGKILL. Requires: it is running.
  void kill(std::size_t node);
  /// Processor time of all of them.
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

/// Puts, with so many in flight, and the processor time of all nodes per acknowledged put. The
/// checksum is of the final content. Errors: throws std::runtime_error.
[[nodiscard]] PointSample measure_chain_writes(const ChainWrites& writes);

/// A client counts in a hash map by consecutive puts; the head is killed meanwhile. Latencies are
/// those of puts including retries, and `longest_pause_ms` is the longest. Errors: throws
/// std::runtime_error, also if the count is lost.
[[nodiscard]] PointSample measure_failover(const ChainSetting& setting, std::uint64_t puts);

}  // namespace espalier::bench
