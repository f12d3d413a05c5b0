// SPDX-License-Identifier: Apache-2.0
// Reads at a version that a node holds for this client, until the snapshot or the connection ends.
//
// Thread: any; what belongs to a cut (cut_part.hpp), one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "channel/rings/remote_sessions.hpp"
#include "kinds/map/client/cut_part.hpp"
#include "kinds/map/client/map_impl.hpp"

namespace espalier::client {

class RemoteSnapshot final : public SnapshotImpl, public CutPart, private HintSource {
 public:
  /// Takes over a lane: the snapshot belongs to that lane's connection. Holds nothing before
  /// open().
  RemoteSnapshot(std::shared_ptr<RemoteSessions> sessions, std::unique_ptr<ThreadRings> rings);
  ~RemoteSnapshot() override;

  [[nodiscard]] RemoteRequests& requests() { return askers_.front()->requests; }
  [[nodiscard]] NodeConnection& connection() { return *connection_; }
  /// Sets the map that it is of.
  void bind(const Scope& scope) {
    scope_ = scope;
    if (sessions_->reads_alone()) scope_.hints = this;
  }
  /// Has the node hold the newest version of the map.
  Result<void> open();
  // For a cut; open() runs the first pair synchronously.
  void close() override;
  bool begin_open() override;
  Result<void> finish_open() override;
  [[nodiscard]] Version held_version() const override { return version_; }
  bool begin_collect() override;
  Result<Version> finish_collect() override;
  bool begin_hold() override;
  Result<void> finish_hold() override;
  bool begin_confirm() override;
  Result<std::optional<Version>> finish_confirm() override;

  [[nodiscard]] Version version() const override { return version_; }
  Result<void> run(const Request& request, Handler& handler) override;
  Result<void> run_parts(const Request& scan, std::uint32_t parts, Handler& handler) override;
  /// Keys that split the scan's range. Errors: those of the call.
  Result<std::vector<std::string>> borders_of(const Request& scan, std::uint32_t parts);
  /// A pipeline of reads at this snapshot, which must outlive it.
  Result<std::unique_ptr<PipelineImpl>> open_pipeline(std::uint32_t in_flight);
  Result<std::uint64_t> count(std::string_view low, std::string_view high) override;

 private:
  struct Asker {
    explicit Asker(std::unique_ptr<ThreadRings> lane_in)
        : rings(std::move(lane_in)), requests(*rings, 1) {}
    std::unique_ptr<ThreadRings> rings;
    RemoteRequests requests;
  };

  /// A hint from this thread's own reads of the map, if it reads the map by READs.
  [[nodiscard]] std::uint64_t hint_of(const Request& read) noexcept override;
  template <class Ask>
  std::invoke_result_t<Ask, RemoteRequests&> ask(Ask ask);

  const std::shared_ptr<RemoteSessions> sessions_;
  const std::shared_ptr<NodeConnection> connection_;
  std::recursive_mutex mutex_;  // a snapshot may be read by several threads, its lanes by one
  std::vector<std::unique_ptr<Asker>> askers_;  // its own, and one per nesting depth of sinks
  std::size_t depth_ = 0;                       // number of askers in use
  Scope scope_{};
  Version version_ = 0;
  std::uint64_t hold_ = 0;  // id of the open hold; 0: none
};

}  // namespace espalier::client
