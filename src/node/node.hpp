// SPDX-License-Identifier: Apache-2.0
// A memory node: maps and tables in its memory, workers beside them, a socket at which clients
// arrive, and a port for those who monitor it.
//
// Thread: start and stop one at a time; the numbers from any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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

/// What no configuration says.
struct NodeOptions {
  bool metrics_at_any_port = false;  ///< whatever metrics.port is; for tests
  /// Kinds beside those that every node has (docs/offloads.md); they must outlive the node.
  std::span<const offload::Kind> own_kinds{};
  /// Where to say at which address of the fabric it could not listen, if it is for that that it
  /// does not start.
  std::string* failed_address = nullptr;
  /// Where to say what is wrong with clients.secrets, if it is for that that it does not start.
  std::vector<std::string>* secret_mistakes = nullptr;
  /// Of a device: what serves in place of the offloads of a node. Outlives the node.
  const offload::OffloadTable* device_offloads = nullptr;
  /// Makes what so many schedulers need besides, before they are made: of a device, how each
  /// reaches the host.
  std::function<Result<void>(offload::Services& services, std::uint32_t schedulers)> make_parts{};
  /// Where to say which peer's file of a secret cannot be read and why, if it is for that that it
  /// does not start.
  std::string* peer_mistake = nullptr;
  /// Where to say why the data folder cannot be used, if it is for that that it does not start.
  std::string* data_mistake = nullptr;
  /// Is told, once and by any thread, why the log of its data folder takes nothing any more.
  std::function<void(const std::string&)> data_failed{};
  /// Is told, by a thread of its own, why a checkpoint of its data was not finished.
  std::function<void(const std::string&)> checkpoint_failed{};
  /// Is told now and then, while it starts, how much of its data it has read and applied.
  std::function<void(const RecoveryProgress&)> recovering{};
  /// That apply what is read, in benchmarks and tests; 0: as many as there are cores for.
  std::uint32_t recovery_threads = 0;
  /// Of a member of a chain: asked again and again, by the thread that starts it, while it waits
  /// until it is the head; true: it is not to start.
  std::function<bool()> stopped{};
  /// Of such a one: is told, by the thread that starts it, what becomes of its folder.
  std::function<void(const std::string&)> chain_report{};
  /// Likewise: is told, by any thread, why it does not take part any more.
  std::function<void(const std::string&)> chain_ended{};
  /// Of the log of its data folder, in tests: how long a segment is.
  std::uint64_t segment_bytes = log::WriterOptions{}.segment_bytes;
  /// Of the cores of its workers, in benchmarks.
  WorkerCore core{};
  /// Where records of the audit log go, by a thread of the node's; none: nothing is kept.
  AuditSink audit{};
  /// For how long a client over a fabric may be silent before it is asked whether it is there.
  std::uint64_t silence_ns = offload::FabricClientsOptions{}.silence_ns;
  /// A peer that says nothing for so long, though it is asked, is given up; so is what it does not
  /// answer for ten times as long, though it is there.
  std::uint64_t peer_silence_ns = 3'000'000'000;
};

class Node {
 public:
  /// Makes the maps and begins to serve. Errors: those of Store::open and Store::create_map,
  /// already_exists (detail 0: a node listens at this socket; else: metrics.port, at which somebody
  /// else listens; also with NodeOptions::failed_address), invalid_argument (detail: metrics.port,
  /// at which this user may not listen; also with NodeOptions::secret_mistakes), system (detail:
  /// errno), not_permitted (with failed_address: of a network, while nobody need prove anything).
  /// And those of NodeOptions::make_parts, and with NodeOptions::peer_mistake of
  /// KnownSecret::read_file. With NodeOptions::data_mistake corrupt. A member of a chain waits here
  /// until it is the head; busy: NodeOptions::stopped.
  static Result<std::unique_ptr<Node>> start(const Config& config, const NodeOptions& options = {});
  /// Stops: clients are told, and what is in flight is finished.
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// Why a setting stayed as it was.
  struct NotChanged {
    std::string_view key;
    Error error;
    std::vector<std::string> words{};  ///< of clients.secrets, what is wrong with the file
  };
  /// Goes on with what `wanted` has of settings that a running node can change
  /// (node/config_settings.hpp), log.level among them, which is its owner's to obey. Clients notice
  /// nothing. Returns the settings that stay as they were: node.socket_mode (not_found: the
  /// socket's file does not lie there any more; system), metrics.port (as start()), and
  /// clients.secrets, whose file is read again each time, if that cannot be: those before stay.
  /// Thread: one at a time, and none that starts, stops or asks for the configuration.
  [[nodiscard]] std::vector<NotChanged> change(const Config& wanted);

  [[nodiscard]] const Config& config() const { return config_; }
  [[nodiscard]] const std::string& page_message() const { return store_->region.page_message(); }
  [[nodiscard]] std::uint64_t memory_bytes() const { return store_->region.taken_bytes(); }
  /// Clients connected now.
  [[nodiscard]] std::uint32_t connections() const;
  /// Clients that were turned away.
  [[nodiscard]] std::uint64_t connections_refused() const { return listener_->refused(); }
  /// Of those who come by its socket.
  [[nodiscard]] const offload::AuthenticationCounts& authentication_counts() const {
    return listener_->authentication_counts();
  }
  /// Clients at the socket that have not said hello.
  [[nodiscard]] std::uint32_t connections_pending() const { return listener_->pending(); }
  /// Where it listens for clients of the fabric, with what was free for it to take.
  [[nodiscard]] const std::vector<std::string>& fabric_addresses() const {
    return fabric_addresses_;
  }
  /// Where gets come as datagrams; null: nowhere.
  [[nodiscard]] const DatagramPort* datagrams() const { return datagrams_.get(); }
  /// Where metrics are served; 0: nowhere.
  [[nodiscard]] std::uint16_t metrics_port() const { return http_ ? http_->port() : 0; }
  [[nodiscard]] const std::vector<std::unique_ptr<Worker>>& workers() const { return workers_; }
  [[nodiscard]] catalog::Catalog& catalog() const { return store_->catalog; }
  [[nodiscard]] tree::StoreCore& store() const { return *store_; }
  [[nodiscard]] offload::Services& services() const { return *services_; }
  /// Where what is acknowledged is kept; null: in memory alone.
  [[nodiscard]] const DataFolder* data() const { return data_.get(); }
  /// Its place in a chain; null: it is in none.
  [[nodiscard]] ChainNode* chain() const { return chain_.get(); }
  /// What makes checkpoints of that; null: as above.
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
  Result<void> serve_metrics_at(std::uint16_t port);

  Config config_;
  NodeOptions options_;
  chain::RecordBuffer chain_records_;  // outlives the log that it keeps records of
  std::unique_ptr<DataFolder> data_;   // outlives the objects whose records it takes
  std::unique_ptr<tree::StoreCore> store_;
  std::unique_ptr<offload::Secrets> secrets_;  // null: nobody proves who he is
  std::unique_ptr<offload::Services> services_;
  std::unique_ptr<ChainNode> chain_;    // null: it is in no chain
  bool begins_anew_ = false;            // it joins one, and lacks what nobody has any more
  std::unique_ptr<AuditThread> audit_;  // null: nobody wants records
  std::unique_ptr<CheckpointThread> checkpoints_;
  memory::SharedMemory page_;
  std::vector<std::string> fabric_addresses_;
  std::unique_ptr<DatagramPort> datagrams_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<HttpListener> http_;
};

}  // namespace espalier::node
