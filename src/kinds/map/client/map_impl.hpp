// SPDX-License-Identifier: Apache-2.0
// What stands behind the handles of maps, their snapshots and their pipelines: a map may lie in
// this process (embedded_map.hpp) or elsewhere. What follows from a request alone, whoever runs it,
// is done above, in map.cpp and snapshot.cpp.
//
// Invariants
// 1. A call of a handle makes one virtual call, and what it reads is copied straight to where the
//    caller wants it: embedded reads are so short that a second indirection would show.
// 2. A map's implementation belongs to its store's and lives until drop_map() or the store's end;
//    snapshots and pipelines go before their map.
//
// Thread: any, but for pipelines: one at a time.
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

/// Runs single requests.
class Runner : public Interface {
 public:
  /// Runs a request to its completion; the handler is called on this thread, before it returns.
  /// Errors: too_many_participants, and whatever else kept the request from being run at all: then
  /// the handler was not told of a completion. What the request itself met is in its completion.
  virtual Result<void> run(const Request& request, Handler& handler) = 0;
  /// The same of a scan in at most so many parts, which are walked at the same time
  /// (parts_of_scan.hpp).
  virtual Result<void> run_parts(const Request& scan, std::uint32_t parts, Handler& handler) = 0;
};

/// Runs reads as of its version; requests of writes are programmers' mistakes.
class SnapshotImpl : public Runner {
 public:
  [[nodiscard]] virtual Version version() const = 0;
  virtual Result<std::uint64_t> count(std::string_view low, std::string_view high) = 0;
};

/// One map. Costs and errors as in Map, and what keeps a request from being run, as in Runner.
class MapImpl : public Runner {
 public:
  /// What stands behind a handle.
  static MapImpl& of(const Map& map) { return *map.impl_; }

  /// Reads one key. Returns whether it is there: only then `value`, whose capacity is kept, and
  /// `version` are written.
  virtual Result<bool> get(std::string_view key, std::string& value, Version& version) = 0;
  /// Does one write (put, insert, update, erase) if the condition holds.
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
