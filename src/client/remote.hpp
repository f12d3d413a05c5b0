// SPDX-License-Identifier: Apache-2.0
// A store on a node: every call is a message through a lane that the thread keeps.
//
// A connection that is lost stays lost: what was in flight on it fails with connection_lost. The
// next call connects again, and maps are opened anew by name, for another node may have come. Reads
// and writes alike are never sent twice. Snapshots and pipelines end with their connection.
//
// Thread: any, but for pipelines: one at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/typed_slots.hpp"
#include "channel/channel.hpp"
#include "client/impl.hpp"
#include "client/node_address.hpp"
#include "client/remote_pipeline.hpp"
#include "client/walk_options.hpp"
#include "tree/walk/access.hpp"
#include "wire/shard.hpp"

namespace espalier::client {

class PeerSessions;
class RemoteSnapshot;
struct OpenedMap;
class ShardedMap;

/// A lane, and the requests of the calls that use it one at a time.
struct RemoteSession {
  explicit RemoteSession(std::unique_ptr<ThreadRings> lane_in)
      : rings(std::move(lane_in)), requests(*rings, 1) {}
  std::unique_ptr<ThreadRings> rings;
  RemoteRequests requests;
  base::TypedSlots<LanePart> parts;  // what kinds of objects keep with it
  bool busy = false;
  bool spoiled = false;  // an answer may still come that nobody waits for: not to be used again
};

/// What one-sided reads of a store took. Thread: any.
class ReadTraffic {
 public:
  /// Adds what came since the counts were `before`.
  void add(const tree::WalkTraffic& before, const tree::WalkTraffic& now) {
    round_trips_.fetch_add(now.round_trips - before.round_trips, std::memory_order_relaxed);
    bytes_.fetch_add(now.bytes - before.bytes, std::memory_order_relaxed);
    asides_.fetch_add(now.asides - before.asides, std::memory_order_relaxed);
  }
  [[nodiscard]] tree::WalkTraffic sum() const {
    return {round_trips_.load(std::memory_order_relaxed), bytes_.load(std::memory_order_relaxed),
            asides_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<std::uint64_t> round_trips_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> asides_{0};
};

/// Sessions of one store: connects when one is needed and there is none. Copies that fork() makes
/// of them, and of what they hand out, are left as they are: make_shared_until_fork() makes all.
class RemoteSessions final : public channel::Channel,
                             public std::enable_shared_from_this<RemoteSessions> {
 public:
  RemoteSessions(NodeAddress address, const StoreOptions& options)
      : Channel(nullptr),
        address_(std::move(address)),
        access_(options.access),
        connecting_{KnownSecret::of(options.secret), options.node_user},
        walks_{.cache_bytes = options.cache_bytes, .by_key = options.access == Access::in_network} {
  }

  [[nodiscard]] bool is_far() const { return client::is_far(address_); }
  /// Whether its maps are read by READs, and not by asking the node.
  [[nodiscard]] bool reads_alone() const { return access_ != Access::rpc; }
  [[nodiscard]] const WalkOptions& walks() const { return walks_; }
  [[nodiscard]] ReadTraffic& traffic() { return traffic_; }

  std::expected<channel::Answer, Refusal> ask(const wire::CallMessage& request,
                                              std::optional<channel::NodeNumber> node) override;
  std::expected<void, Refusal> make(const wire::CallMessage& request, const wire::CallMessage& undo,
                                    const channel::TakeAnswer& take) override;

  /// Errors: as connect_to().
  Result<std::shared_ptr<RemoteSession>> acquire();
  void release(std::shared_ptr<RemoteSession> session) noexcept;
  /// A lane that nobody else uses, for a pipeline. Errors: the same.
  Result<std::unique_ptr<ThreadRings>> open_lane();
  void release(std::unique_ptr<ThreadRings> rings) noexcept;
  /// Ends all connections: threads that used them may keep their sessions for long.
  void close();
  [[nodiscard]] bool closed() const { return closed_.load(std::memory_order_relaxed); }

 private:
  NodeAddress address_;
  const Access access_;
  const ConnectOptions connecting_;
  const WalkOptions walks_;
  ReadTraffic traffic_;
  std::mutex mutex_;                            // guards all below
  std::shared_ptr<NodeConnection> connection_;  // the newest one; more lanes than it has: another
  std::vector<std::weak_ptr<NodeConnection>> all_;  // those that anybody still keeps
  std::vector<std::shared_ptr<RemoteSession>> free_;
  std::vector<std::unique_ptr<ThreadRings>> free_rings_;
  std::atomic<bool> closed_{false};
};

/// A session for the duration of one call: the thread's own, or another if that is in use.
class RemoteLease {
 public:
  static Result<RemoteLease> take(const std::shared_ptr<RemoteSessions>& sessions) {
    return take(*sessions);
  }
  static Result<RemoteLease> take(RemoteSessions& sessions);
  /// One that leads to this node. Errors: besides, not_found (another has come).
  static Result<RemoteLease> take_at(RemoteSessions& sessions, channel::NodeNumber node);
  RemoteLease(RemoteLease&& other) noexcept = default;
  RemoteLease& operator=(RemoteLease&&) = delete;
  ~RemoteLease();
  RemoteSession* operator->() const { return session_.get(); }
  RemoteSession& operator*() const { return *session_; }

 private:
  RemoteLease(std::shared_ptr<RemoteSession> session, std::shared_ptr<RemoteSessions> extra)
      : session_(std::move(session)), extra_(std::move(extra)) {}
  std::shared_ptr<RemoteSession> session_;
  std::shared_ptr<RemoteSessions> extra_;  // where to return one that is not the thread's own
};

/// Which part of which map over several nodes a node is to have.
struct ShardIdentity {
  std::uint64_t uid = 0;
  std::uint32_t number = 0;
};

class RemoteMap final : public MapImpl {
 public:
  /// `shard`: it is a part; on a node that has started anew it is this part or none.
  RemoteMap(std::shared_ptr<RemoteSessions> sessions, std::string name, std::uint64_t node_id,
            std::uint32_t id, const wire::MapShape& shape,
            std::optional<ShardIdentity> shard = std::nullopt);

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
  /// One with a lane of its own that holds nothing yet. Errors: as snapshot().
  Result<std::unique_ptr<RemoteSnapshot>> prepare_snapshot();
  Result<std::unique_ptr<PipelineImpl>> open_pipeline(std::uint32_t in_flight) override;
  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] const MapOptions& options() const override { return options_; }
  [[nodiscard]] std::uint32_t max_key_bytes() const override { return max_key_bytes_; }
  Result<MapStats> stats() override;
  Result<std::vector<std::string>> audit() override { return fail(Code::unsupported); }

  [[nodiscard]] bool is(std::uint64_t node_id, std::uint32_t id) const {
    return node_id_.load(std::memory_order_acquire) == node_id && id_.load() == id;
  }
  /// Refuses a batch that no node would take. Errors: as Map::write.
  [[nodiscard]] Result<void> check(const WriteBatch& batch) const;
  /// The map's number on the node that the session leads to.
  Result<Scope> scope(RemoteSession& session);
  Result<Scope> scope(RemoteRequests& requests, const NodeConnection& connection);

 private:
  template <class Request>
  Result<typename Request::Reply> ask_here(Request request);

  const std::shared_ptr<RemoteSessions> sessions_;
  const std::string name_;
  MapOptions options_;
  std::uint32_t max_key_bytes_;
  const std::optional<ShardIdentity> shard_;
  std::mutex mutex_;  // guards the two below while they change together
  std::atomic<std::uint64_t> node_id_;
  std::atomic<std::uint32_t> id_;
};

class RemoteStore final : public StoreImpl {
 public:
  /// Connects to the node at this address. Errors: as connect_to().
  static Result<std::unique_ptr<StoreImpl>> connect(const NodeAddress& address,
                                                    const StoreOptions& options = {});
  RemoteStore(std::shared_ptr<RemoteSessions> sessions, const StoreOptions& options);
  ~RemoteStore() override;

  Result<MapImpl*> create_map(std::string_view name, const MapOptions& options) override;
  Result<MapImpl*> open_map(std::string_view name) override;
  Result<void> drop_map(std::string_view name) override;
  Result<std::uint64_t> sequence(std::string_view name, std::uint32_t count) override;
  [[nodiscard]] const std::string& page_message() const override { return page_message_; }
  Result<std::uint64_t> memory_bytes() override { return fail(Code::unsupported); }
  Result<std::string> node_numbers() override;
  [[nodiscard]] std::unique_ptr<TablesImpl> tables() override;
  [[nodiscard]] std::shared_ptr<channel::Channel> channel() override { return sessions_; }
  [[nodiscard]] tree::WalkTraffic read_traffic() const override;
  void trim() override {}

 private:
  /// The map that a request by its name makes or opens.
  Result<MapImpl*> keep(const wire::CallMessage& request);
  Result<MapImpl*> keep(RemoteSession& session, const wire::CallMessage& request);
  Result<void> drop_others(std::string_view name, const wire::ShardMap& map);
  MapImpl* keep_sharded(RemoteSession& session, std::string_view name, const OpenedMap& opened);

  const std::shared_ptr<RemoteSessions> sessions_;
  const std::shared_ptr<PeerSessions> peers_;
  const std::string page_message_ = "memory of a node";
  std::mutex mutex_;  // guards all below
  std::vector<std::unique_ptr<MapImpl>> maps_;
  std::map<std::string, RemoteMap*, std::less<>> by_name_;
  std::map<std::string, ShardedMap*, std::less<>> sharded_by_name_;
};

}  // namespace espalier::client
