// SPDX-License-Identifier: Apache-2.0
// Implementations behind the handles of maps, their snapshots and their pipelines: a map may be
// local (embedded_map.hpp) or remote. What depends on the request alone is done above, in map.cpp
// and snapshot.cpp.
//
// Invariants
// 1. A call of a handle makes one virtual call, and results are copied directly to the caller's
//    memory: embedded reads are so short that a second indirection would be measurable.
// 2. A map's implementation belongs to its store's and lives until drop_map() or the store's end;
//    snapshots and pipelines are destroyed before their map.
//
// Thread: any; pipelines: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "channel/interface.hpp"
#include "channel/rings/pipeline_impl.hpp"
#include "espalier/map.hpp"

namespace espalier::client {

class Runner : public Interface {
 public:
  /// Runs a request to its completion; the handler is called on this thread, before the return.
  /// Errors: too_many_participants, and whatever else prevented the request from running: the
  /// handler is then not called. Errors of the request itself are in its completion.
  virtual Result<void> run(const Request& request, Handler& handler) = 0;
  /// Runs a scan in at most `parts` parts, which are walked concurrently (parts_of_scan.hpp).
  /// Errors: as run().
  virtual Result<void> run_parts(const Request& scan, std::uint32_t parts, Handler& handler) = 0;
};

/// Runs reads at its version; a request that writes is a programming error.
class SnapshotImpl : public Runner {
 public:
  [[nodiscard]] virtual Version version() const = 0;
  virtual Result<std::uint64_t> count(std::string_view low, std::string_view high) = 0;
};

/// One map. Costs and errors as in Map; errors that prevent a request from running, as in Runner.
class MapImpl : public Runner {
 public:
  /// The implementation behind a handle.
  static MapImpl& of(const Map& map) { return *map.impl_; }

  /// Reads one key. Returns whether it exists; only then writes `value`, reusing its capacity, and
  /// `version`.
  virtual Result<bool> get(std::string_view key, std::string& value, Version& version) = 0;
  /// Performs one write (put, insert, update, erase) if the condition holds.
  /// Errors: condition_failed, and as Map::put.
  virtual Result<Written> write_if(Op op, std::string_view key, std::string_view value,
                                   const Condition& condition) = 0;
  /// As Map::add.
  virtual Result<std::uint64_t> add(std::string_view key, std::uint64_t amount) = 0;
  virtual Result<Written> write(const WriteBatch& batch) = 0;
  virtual Result<std::uint64_t> scan(std::string_view low, std::string_view high,
                                     const ItemSink& sink, ScanOptions options) = 0;
  virtual Result<std::uint64_t> count(std::string_view low, std::string_view high) = 0;
  virtual Result<std::uint64_t> count_estimate(std::string_view low, std::string_view high) = 0;

  virtual Result<std::unique_ptr<SnapshotImpl>> snapshot() = 0;
  /// Requires: 1 to 256 in flight.
  virtual Result<std::unique_ptr<PipelineImpl>> open_pipeline(std::uint32_t in_flight) = 0;

  [[nodiscard]] virtual const std::string& name() const = 0;
  [[nodiscard]] virtual const MapOptions& options() const = 0;
  [[nodiscard]] virtual std::uint32_t max_key_bytes() const = 0;
  virtual Result<MapStats> stats() = 0;
  virtual Result<std::vector<std::string>> audit() = 0;
};

}  // namespace espalier::client
