// SPDX-License-Identifier: Apache-2.0
// What stands behind the handles of the public API.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "client/session.hpp"
#include "espalier/map.hpp"

namespace espalier::client {

class MapImpl {
 public:
  MapImpl(std::unique_ptr<tree::MapCore> core_in, std::shared_ptr<SessionPool> sessions_in)
      : core(std::move(core_in)), sessions(std::move(sessions_in)) {}

  /// What stands behind a handle.
  static MapImpl& of(const Map& map) { return *map.impl_; }

  /// Runs one request to its completion on the calling thread.
  /// Errors: too_many_participants, and what the request itself met.
  Result<void> run(const tree::WalkRequest& request);

  std::unique_ptr<tree::MapCore> core;
  std::shared_ptr<SessionPool> sessions;
};

class StoreImpl {
 public:
  StoreImpl(memory::Region region, const StoreOptions& options);
  ~StoreImpl();

  tree::StoreCore core;
  std::shared_ptr<SessionPool> sessions;
  std::string page_message;
  mutable std::mutex mutex;  // guards the names
  std::map<std::string, std::unique_ptr<MapImpl>, std::less<>> maps;
  std::uint32_t next_map_id = 1;  // never reused (rule 1)
};

class SnapshotImpl {
 public:
  SnapshotImpl(MapImpl& map_in, std::list<tree::HeldVersion>::iterator held_in)
      : map(map_in), held(held_in) {}
  ~SnapshotImpl() { map.core->store.reclaimer.drop(*map.core, held); }
  SnapshotImpl(const SnapshotImpl&) = delete;
  SnapshotImpl& operator=(const SnapshotImpl&) = delete;

  MapImpl& map;
  std::list<tree::HeldVersion>::iterator held;
};

class PipelineImpl {
 public:
  PipelineImpl(MapImpl& map_in, Session* session_in, std::uint32_t in_flight);
  ~PipelineImpl();
  PipelineImpl(const PipelineImpl&) = delete;
  PipelineImpl& operator=(const PipelineImpl&) = delete;

  void look_at_size();

  MapImpl& map;
  Session* session;
  bool interleave_warm = false;
  std::unique_ptr<HostEngine> engine;
};

/// Keeps the answer of one request that is run alone, copying what points into the map.
class Answer final : public Handler {
 public:
  void done(const Completion& completion) override;
  bool items(std::uint64_t tag, std::span<const Item> items) override;

  Completion completion;
  std::string key;
  std::string* value = nullptr;  // where to copy a found value
  const ItemSink* sink = nullptr;
};

/// The error of a completed request, or nothing.
inline Result<void> check(const Completion& completion) {
  if (completion.ok) return {};
  return std::unexpected(completion.error);
}

}  // namespace espalier::client
