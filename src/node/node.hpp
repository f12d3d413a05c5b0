// SPDX-License-Identifier: Apache-2.0
// A memory node: maps and tables in its memory, workers beside them, a socket that accepts clients,
// and a port for monitoring.
//
// Thread: start and stop one at a time; the numbers from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chain/record_buffer.hpp"
#include "engine/secrets.hpp"
#include "engine/services.hpp"
#include "memory/shared_memory.hpp"
#include "node/audit_thread.hpp"
#include "node/checkpoint_thread.hpp"
#include "node/config.hpp"
#include "node/data_folder.hpp"
#include "node/datagram_port.hpp"
#include "node/http_listener.hpp"
#include "node/listener.hpp"
#include "node/worker.hpp"
#include "store/store_core.hpp"

namespace espalier::node {

class ChainNode;

/// Options outside the configuration.
struct NodeOptions {
  bool metrics_at_any_port = false;  ///< ignores metrics.port; for tests
  /// Kinds beside those of every node (docs/offloads.md); must outlive the node.
  std::span<const offload::Kind> own_kinds{};
  /// Receives the fabric address at which the node could not listen, if that is why the start
  /// failed.
  std::string* failed_address = nullptr;
  /// Receives the mistakes in clients.secrets, if they are why the start failed.
  std::vector<std::string>* secret_mistakes = nullptr;
  /// On a device: replaces a node's offloads. Outlives the node.
  const offload::OffloadTable* device_offloads = nullptr;
  /// Creates further state before the given number of schedulers: on a device, how each reaches the
  /// host.
  std::function<Result<void>(offload::Services& services, std::uint32_t schedulers)> make_parts{};
  /// Receives the peer whose secret file cannot be read, and the reason, if that is why the start
  /// failed.
  std::string* peer_mistake = nullptr;
  /// Receives why the data folder cannot be used, if that is why the start failed.
  std::string* data_mistake = nullptr;
  /// Called once, by any thread, with the reason why the log of the data folder has failed.
  std::function<void(const std::string&)> data_failed{};
  /// Called by a thread of the node with the reason of a failed checkpoint.
  std::function<void(const std::string&)> checkpoint_failed{};
  /// Called periodically during the start with the progress of recovery.
  std::function<void(const RecoveryProgress&)> recovering{};
  /// Recovery threads, for benchmarks and tests; 0: by the number of cores.
  std::uint32_t recovery_threads = 0;
  /// On a chain member: polled by the starting thread while it waits to become the head; true: do
  /// not start.
  std::function<bool()> stopped{};
  /// On a chain member: called by the starting thread with progress on its folder.
  std::function<void(const std::string&)> chain_report{};
  /// On a chain member: called by any thread with the reason why it has left the chain.
  std::function<void(const std::string&)> chain_ended{};
  /// Length of a log segment, for tests.
  std::uint64_t segment_bytes = log::WriterOptions{}.segment_bytes;
  /// The cores of its workers, for benchmarks.
  WorkerCore core{};
  /// Receives records of the audit log, on a thread of the node; none: no records are kept.
  AuditSink audit{};
  /// How long a client over a fabric may be silent before the node probes it.
  std::uint64_t silence_ns = offload::FabricClientsOptions{}.silence_ns;
  /// A peer that is silent for so long despite probes is given up; so is a post that a live peer
  /// leaves unanswered for ten times as long.
  std::uint64_t peer_silence_ns = 3'000'000'000;
};

class Node {
 public:
  /// Creates the maps and begins to serve. Errors: those of Store::open and Store::create_map;
  /// already_exists (detail 0: a node listens at this socket; else metrics.port, which is in use;
  /// also with NodeOptions::failed_address); invalid_argument (detail: metrics.port, which this
  /// user may not use; also with NodeOptions::secret_mistakes); system (detail: errno);
  /// not_permitted (with failed_address: of a network, without authentication); those of
  /// NodeOptions::make_parts; those of KnownSecret::read_file with NodeOptions::peer_mistake;
  /// corrupt with NodeOptions::data_mistake. A member of a chain waits here until it is the head;
  /// busy: NodeOptions::stopped.
  static Result<std::unique_ptr<Node>> start(const Config& config, const NodeOptions& options = {});
  /// Stops: finishes what is in flight, and notifies the clients.
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// Why a setting was not changed.
  struct NotChanged {
    std::string_view key;
    Error error;
    std::vector<std::string> words{};  ///< for clients.secrets, the file's mistakes
  };
  /// Adopts those settings of `wanted` that a running node can change (node/config_settings.hpp),
  /// including log.level, which its owner applies. Clients are not disturbed. Returns the settings
  /// that could not change: node.socket_mode (not_found: the socket's file is no longer there;
  /// system), metrics.port (as start()), and clients.secrets, whose file is read again each time,
  /// if it is invalid: the previous secrets stay.
  /// Thread: one at a time, and none that starts, stops or reads the configuration.
  [[nodiscard]] std::vector<NotChanged> change(const Config& wanted);

  [[nodiscard]] const Config& config() const { return config_; }
  [[nodiscard]] const std::string& page_message() const { return store_->region.page_message(); }
  [[nodiscard]] std::uint64_t memory_bytes() const { return store_->region.taken_bytes(); }
  /// Clients connected now.
  [[nodiscard]] std::uint32_t connections() const;
  /// Clients that were refused.
  [[nodiscard]] std::uint64_t connections_refused() const { return listener_->refused(); }
  /// Counts for clients of its socket.
  [[nodiscard]] const offload::AuthenticationCounts& authentication_counts() const {
    return listener_->authentication_counts();
  }
  /// Clients of the socket that have not sent a hello.
  [[nodiscard]] std::uint32_t connections_pending() const { return listener_->pending(); }
  /// Its fabric addresses, with the ports that it got.
  [[nodiscard]] const std::vector<std::string>& fabric_addresses() const {
    return fabric_addresses_;
  }
  /// The port of gets as datagrams; null: none.
  [[nodiscard]] const DatagramPort* datagrams() const { return datagrams_.get(); }
  /// The port of the metrics; 0: none.
  [[nodiscard]] std::uint16_t metrics_port() const { return http_ ? http_->port() : 0; }
  [[nodiscard]] const std::vector<std::unique_ptr<Worker>>& workers() const { return workers_; }
  [[nodiscard]] catalog::Catalog& catalog() const { return store_->catalog; }
  [[nodiscard]] tree::StoreCore& store() const { return *store_; }
  [[nodiscard]] offload::Services& services() const { return *services_; }
  /// The data folder; null: in memory alone.
  [[nodiscard]] const DataFolder* data() const { return data_.get(); }
  /// Its membership of a chain; null: none.
  [[nodiscard]] ChainNode* chain() const { return chain_.get(); }
  /// Makes checkpoints of the data folder; null: none.
  [[nodiscard]] CheckpointThread* checkpoints() const { return checkpoints_.get(); }

 private:
  Node(const Config& config, const NodeOptions& options);
  Result<void> begin();
  Result<void> open_store();
  Result<void> open_data();
  Result<void> join_chain();
  Result<void> follow_chain();
  Result<void> await_recorded();
  Result<void> refuse_data(std::string mistake);
  Result<void> make_maps();
  Result<void> start_checkpoints();
  Result<void> open_page();
  [[nodiscard]] std::uint64_t node_id() const;
  Result<void> open_secrets();
  Result<void> open_peers();
  Result<void> open_workers();
  Result<void> open_fabrics();
  Result<void> open_datagrams();
  Result<void> open_metrics();
  Result<void> begin_metrics();
  Result<void> serve_metrics_at(std::uint16_t port);
  [[nodiscard]] std::unique_ptr<HttpListener> make_http();
  [[nodiscard]] std::string metrics_page();
  void report_recovery(const RecoveryProgress& now);

  Config config_;
  NodeOptions options_;
  chain::RecordBuffer chain_records_;  // outlives the log that it keeps records of
  std::unique_ptr<DataFolder> data_;   // outlives the objects whose records it takes
  std::unique_ptr<tree::StoreCore> store_;
  std::unique_ptr<offload::Secrets> secrets_;  // null: no authentication
  std::unique_ptr<offload::Services> services_;
  std::unique_ptr<ChainNode> chain_;    // null: in no chain
  bool begins_anew_ = false;            // it must join anew: no member has the records that it
                                        // lacks
  std::unique_ptr<AuditThread> audit_;  // null: no audit records
  std::unique_ptr<CheckpointThread> checkpoints_;
  memory::SharedMemory page_;
  std::vector<std::string> fabric_addresses_;
  std::unique_ptr<DatagramPort> datagrams_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<Listener> listener_;
  std::atomic<bool> has_started_{false};  // all above may be read by other threads
  std::mutex recovery_mutex_;
  RecoveryProgress recovery_;  // guarded by recovery_mutex_
  std::unique_ptr<HttpListener> http_;
};

}  // namespace espalier::node
