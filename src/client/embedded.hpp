// SPDX-License-Identifier: Apache-2.0
// A store in this process: every call works on the tree itself, on the thread that makes it, with
// a session that the thread keeps (session.hpp).
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "channel/channel.hpp"
#include "client/call_context.hpp"
#include "client/impl.hpp"
#include "sequencer/counters.hpp"
#include "tree/write/map_object.hpp"

namespace espalier::client {

class EmbeddedMap final : public MapImpl {
 public:
  EmbeddedMap(std::shared_ptr<tree::MapCore> core, std::shared_ptr<CallContextPool> sessions)
      : core_(std::move(core)), sessions_(std::move(sessions)) {}

  /// Room for the handle of a map that is made next: nothing but begin() may be called.
  explicit EmbeddedMap(std::shared_ptr<CallContextPool> sessions)
      : sessions_(std::move(sessions)) {}
  void begin(std::shared_ptr<tree::MapCore> core) noexcept { core_ = std::move(core); }

  /// What stands behind a handle. Requires: its store is embedded.
  static EmbeddedMap& of(const Map& map) { return static_cast<EmbeddedMap&>(MapImpl::of(map)); }

  Result<void> run(const Request& request, Handler& handler) override;
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

  /// Runs a request with all that the tree may be told about it. Errors: too_many_participants.
  Result<void> walk(const tree::WalkRequest& request);
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
  Result<std::uint64_t> count(std::string_view low, std::string_view high) override;

 private:
  EmbeddedMap& map_;
  std::list<memory::HeldVersion>::iterator held_;
};

class EmbeddedPipeline final : public PipelineImpl {
 public:
  /// Takes a session of its own, and gives it back.
  EmbeddedPipeline(tree::MapCore& core, std::shared_ptr<CallContextPool> sessions,
                   CallContext* session, std::uint32_t in_flight);
  ~EmbeddedPipeline() override;

  void submit(std::span<const Request> requests, Handler& handler) override;
  std::size_t poll() override { return executor_->poll(); }
  std::size_t advance() override { return executor_->advance(); }
  void run(std::span<const Request> requests, Handler& handler) override;

 private:
  void look_at_size();

  tree::MapCore& core_;
  const std::shared_ptr<CallContextPool> sessions_;
  CallContext* const session_;
  bool interleave_warm_ = false;
  std::unique_ptr<tree::MapExecutor> executor_;
};

/// The way to the objects of a store of this process; they stay as long as it, also when the store
/// is gone.
class EmbeddedChannel final : public channel::Channel {
 public:
  explicit EmbeddedChannel(std::shared_ptr<tree::StoreCore> core)
      : Channel(&core->catalog), core_(std::move(core)) {}
  std::expected<channel::Answer, channel::Refusal> ask(
      const wire::CallMessage& request, std::optional<channel::NodeNumber> node) override;
  std::expected<void, channel::Refusal> make(const wire::CallMessage& request,
                                             const wire::CallMessage& undo,
                                             const channel::TakeAnswer& take) override;

 private:
  const std::shared_ptr<tree::StoreCore> core_;
};

class EmbeddedStore final : public StoreImpl {
 public:
  /// Errors: as Store::open.
  static Result<std::unique_ptr<StoreImpl>> open(const StoreOptions& options);
  EmbeddedStore(memory::Region region, const StoreOptions& options);
  ~EmbeddedStore() override;

  Result<MapImpl*> create_map(std::string_view name, const MapOptions& options) override;
  Result<MapImpl*> open_map(std::string_view name) override;
  Result<void> drop_map(std::string_view name) override;
  Result<std::uint64_t> sequence(std::string_view name, std::uint32_t count) override {
    return counters_.take(name, count, core_.catalog.redo());
  }
  [[nodiscard]] const std::string& page_message() const override {
    return core_.region.page_message();
  }
  Result<std::uint64_t> memory_bytes() override { return core_.region.taken_bytes(); }
  Result<std::string> node_numbers() override { return fail(Code::unsupported); }
  [[nodiscard]] std::unique_ptr<TablesImpl> tables() override;
  [[nodiscard]] std::shared_ptr<channel::Channel> channel() override { return channel_; }
  void trim() override;

 private:
  using MapsById = std::unordered_map<std::uint32_t, std::unique_ptr<EmbeddedMap>>;
  [[nodiscard]] MapsById::node_type handle_room();
  [[nodiscard]] MapImpl* behind_handles(std::shared_ptr<tree::MapCore> core);

  const std::shared_ptr<tree::StoreCore> shared_;  // with all tables that somebody holds
  tree::StoreCore& core_;
  const std::shared_ptr<EmbeddedChannel> channel_;
  const std::shared_ptr<table::RegexCompiler> regexes_;  // of StoreOptions; may be null
  sequencer::Counters counters_;
  const std::shared_ptr<CallContextPool> sessions_;
  std::mutex mutex_;  // guards maps_, together with what the catalogue says; taken before its lock
  MapsById maps_;
};

}  // namespace espalier::client
