// SPDX-License-Identifier: Apache-2.0
// The channel of one store to a node: each call is a message through a lane that the thread keeps.
//
// A lost connection stays lost: requests in flight fail with connection_lost. The next call
// connects again, perhaps to another node. Neither reads nor writes are ever sent twice.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/typed_slots.hpp"
#include "base/until_fork.hpp"
#include "channel/channel.hpp"
#include "channel/rings/node_address.hpp"
#include "channel/rings/remote_pipeline.hpp"
#include "channel/rings/walk_options.hpp"
#include "espalier/types.hpp"
#include "reach/walk_traffic.hpp"

namespace espalier::client {

/// A lane, and the requests of the calls that use it, one at a time.
struct RemoteSession {
  explicit RemoteSession(std::unique_ptr<ThreadRings> lane_in)
      : rings(std::move(lane_in)), requests(*rings, 1) {}
  std::unique_ptr<ThreadRings> rings;
  RemoteRequests requests;
  base::TypedSlots<LanePart> parts;  // state of kinds of objects
  bool busy = false;
  bool spoiled = false;  // an unawaited answer may still arrive: do not reuse
};

/// Counts the traffic of a store's one-sided reads. Thread: any.
class ReadTraffic {
 public:
  /// Adds the difference between two counts.
  void add(const tree::WalkTraffic& before, const tree::WalkTraffic& now) {
    round_trips_.fetch_add(now.round_trips - before.round_trips, std::memory_order_relaxed);
    bytes_.fetch_add(now.bytes - before.bytes, std::memory_order_relaxed);
    asides_.fetch_add(now.asides - before.asides, std::memory_order_relaxed);
    by_rings_.fetch_add(now.by_rings - before.by_rings, std::memory_order_relaxed);
    reads_.fetch_add(now.reads - before.reads, std::memory_order_relaxed);
  }
  [[nodiscard]] tree::WalkTraffic sum() const {
    return {round_trips_.load(std::memory_order_relaxed), bytes_.load(std::memory_order_relaxed),
            asides_.load(std::memory_order_relaxed), by_rings_.load(std::memory_order_relaxed),
            reads_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<std::uint64_t> round_trips_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> asides_{0};
  std::atomic<std::uint64_t> by_rings_{0};
  std::atomic<std::uint64_t> reads_{0};
};

/// Sessions of one store; connects on demand. Copies in forked processes are left untouched: all
/// objects are made by make_shared_until_fork().
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
  /// Whether its maps are read by one-sided READs instead of calls.
  [[nodiscard]] bool reads_alone() const {
    return access_ == Access::one_sided || access_ == Access::in_network;
  }
  /// Whether gets of its maps are sent as datagrams.
  [[nodiscard]] bool asks_by_datagrams() const { return access_ == Access::datagram; }
  [[nodiscard]] const WalkOptions& walks() const { return walks_; }
  [[nodiscard]] ReadTraffic& traffic() { return traffic_; }

  std::expected<channel::Answer, Refusal> ask(const wire::CallMessage& request,
                                              std::optional<channel::NodeNumber> node) override;
  std::expected<void, Refusal> make(const wire::CallMessage& request, const wire::CallMessage& undo,
                                    const channel::TakeAnswer& take) override;

  /// A pipeline of requests on an object, whose id `node` assigned. Errors: as connect_to();
  /// not_found (another node answers).
  Result<std::unique_ptr<PipelineImpl>> open_pipeline(const Scope& scope, channel::NodeNumber node,
                                                      std::uint32_t in_flight);

  /// Errors: as connect_to().
  Result<std::shared_ptr<RemoteSession>> acquire();
  void release(std::shared_ptr<RemoteSession> session) noexcept;
  /// A lane of the caller's own, for a pipeline. Errors: the same.
  Result<std::unique_ptr<ThreadRings>> open_lane();
  void release(std::unique_ptr<ThreadRings> rings) noexcept;
  /// Closes all connections, since threads that used them may keep their sessions for long.
  void close();
  [[nodiscard]] bool closed() const { return closed_.load(std::memory_order_relaxed); }

 private:
  NodeAddress address_;
  const Access access_;
  const ConnectOptions connecting_;
  const WalkOptions walks_;
  ReadTraffic traffic_;
  std::mutex mutex_;                                // guards all below
  std::shared_ptr<NodeConnection> connection_;      // the newest, replaced once its lanes are taken
  std::vector<std::weak_ptr<NodeConnection>> all_;  // those still in use
  std::vector<std::shared_ptr<RemoteSession>> free_;
  std::vector<std::unique_ptr<ThreadRings>> free_rings_;
  std::atomic<bool> closed_{false};
};

/// A session for the duration of one call: the thread's own, or another one if that is in use.
class RemoteLease {
 public:
  static Result<RemoteLease> take(const std::shared_ptr<RemoteSessions>& sessions) {
    return take(*sessions);
  }
  static Result<RemoteLease> take(RemoteSessions& sessions);
  /// The same, for a session with this node. Errors: besides, not_found (another node answers).
  static Result<RemoteLease> take_at(RemoteSessions& sessions, channel::NodeNumber node);
  /// The thread's own session, if it has an unused one: opens nothing, and sends nothing.
  static std::optional<RemoteLease> take_idle(RemoteSessions& sessions) noexcept;
  RemoteLease(RemoteLease&& other) noexcept = default;
  RemoteLease& operator=(RemoteLease&&) = delete;
  ~RemoteLease();
  RemoteSession* operator->() const { return session_.get(); }
  RemoteSession& operator*() const { return *session_; }

 private:
  RemoteLease(std::shared_ptr<RemoteSession> session, std::shared_ptr<RemoteSessions> extra)
      : session_(std::move(session)), extra_(std::move(extra)) {}
  std::shared_ptr<RemoteSession> session_;
  std::shared_ptr<RemoteSessions> extra_;  // where to return a session that is not the thread's own
};

}  // namespace espalier::client
