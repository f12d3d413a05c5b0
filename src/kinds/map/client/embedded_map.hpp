// SPDX-License-Identifier: Apache-2.0
// A map of this process: each call works on the tree directly, on the calling thread, with the
// thread's cached state (call_context.hpp).
//
// Thread: any, but for pipelines: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/map/client/call_context.hpp"
#include "kinds/map/client/map_impl.hpp"
#include "kinds/map/write/map_object.hpp"

namespace espalier::client {

class EmbeddedMap final : public MapImpl {
 public:
  EmbeddedMap(std::shared_ptr<tree::MapCore> core, std::shared_ptr<CallContextPool> sessions)
      : core_(std::move(core)), sessions_(std::move(sessions)) {}

  /// An empty handle for a map that is created next: only begin() may be called.
  explicit EmbeddedMap(std::shared_ptr<CallContextPool> sessions)
      : sessions_(std::move(sessions)) {}
  void begin(std::shared_ptr<tree::MapCore> core) noexcept { core_ = std::move(core); }

  /// The implementation behind a handle. Requires: its store is embedded.
  static EmbeddedMap& of(const Map& map) { return static_cast<EmbeddedMap&>(MapImpl::of(map)); }

  Result<void> run(const Request& request, Handler& handler) override;
  Result<void> run_parts(const Request& scan, std::uint32_t parts, Handler& handler) override;
  Result<bool> get(std::string_view key, std::string& value, Version& version) override;
  Result<Written> write_if(Op op, std::string_view key, std::string_view value,
                           const Condition& condition) override;
  Result<std::uint64_t> add(std::string_view key, std::uint64_t amount) override;
  Result<Written> write(const WriteBatch& batch) override;
  Result<std::uint64_t> scan(std::string_view low, std::string_view high, const ItemSink& sink,
                             ScanOptions options) override;
  Result<std::uint64_t> count(std::string_view low, std::string_view high) override;
  Result<std::uint64_t> count_estimate(std::string_view low, std::string_view high) override;
  Result<std::unique_ptr<SnapshotImpl>> snapshot() override;
  Result<std::unique_ptr<PipelineImpl>> open_pipeline(std::uint32_t in_flight) override;
  [[nodiscard]] const std::string& name() const override { return core_->name; }
  [[nodiscard]] const MapOptions& options() const override { return core_->options; }
  [[nodiscard]] std::uint32_t max_key_bytes() const override {
    return core_->geometry.key_bytes_max;
  }
  Result<MapStats> stats() override;
  Result<std::vector<std::string>> audit() override;

  /// Runs a request with its context. Errors: too_many_participants.
  Result<void> walk(const tree::WalkRequest& request);
  /// Runs a scan in parts at a version; null: each part at the newest one. Errors: the same.
  Result<void> walk_parts(const Request& scan, std::uint32_t parts, Handler& handler,
                          const memory::HeldVersion* held);
  [[nodiscard]] tree::MapCore& core() const { return *core_; }

 private:
  Result<bool> scan_few(const Request& request, const ItemSink& sink);

  std::shared_ptr<tree::MapCore> core_;
  const std::shared_ptr<CallContextPool> sessions_;
};

class EmbeddedSnapshot final : public SnapshotImpl {
 public:
  /// Holds the newest released version; `slot` is that of the calling thread's session.
  EmbeddedSnapshot(EmbeddedMap& map, base::EpochSlot& slot);
  ~EmbeddedSnapshot() override { map_.core().store.reclaimer.drop(map_.core(), held_); }

  [[nodiscard]] Version version() const override { return held_->version; }
  Result<void> run(const Request& request, Handler& handler) override {
    return map_.walk({&request, &handler, &*held_, {}, {}});
  }
  Result<void> run_parts(const Request& scan, std::uint32_t parts, Handler& handler) override {
    return map_.walk_parts(scan, parts, handler, &*held_);
  }
  Result<std::uint64_t> count(std::string_view low, std::string_view high) override;

 private:
  EmbeddedMap& map_;
  std::list<memory::HeldVersion>::iterator held_;
};

/// Whether any of these writes.
[[nodiscard]] bool some_write(std::span<const Request> requests);

class EmbeddedPipeline final : public PipelineImpl {
 public:
  /// Takes over a session, and releases it at the end.
  EmbeddedPipeline(tree::MapCore& core, std::shared_ptr<CallContextPool> sessions,
                   CallContext* session, std::uint32_t in_flight);
  ~EmbeddedPipeline() override;

  void submit(std::span<const Request> requests, Handler& handler) override;
  std::size_t poll() override;
  std::size_t advance() override;
  void run(std::span<const Request> requests, Handler& handler) override;

 private:
  void look_at_size();
  void wait_before_writes();

  tree::MapCore& core_;
  const std::shared_ptr<CallContextPool> sessions_;
  CallContext* const session_;
  bool interleave_warm_ = false;
  bool writes_ = false;  // requests in flight may write
  std::unique_ptr<tree::MapExecutor> executor_;
};

}  // namespace espalier::client
