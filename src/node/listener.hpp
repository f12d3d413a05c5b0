// SPDX-License-Identifier: Apache-2.0
// The UNIX socket of a node: accepts connections, and hands each client to a worker after its
// hello.
//
// A silent client, or one that sends nonsense, holds one descriptor for a few seconds and nothing
// else.
//
// Thread: its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <unordered_map>

#include "engine/services.hpp"
#include "fabric/shm/listening_socket.hpp"
#include "memory/shared_memory.hpp"
#include "node/config.hpp"
#include "node/event_fd.hpp"
#include "node/handshake_packets.hpp"
#include "node/local_authenticator.hpp"
#include "node/peer_user.hpp"
#include "node/worker.hpp"
#include "wire/handshake.hpp"

namespace espalier::node {

class Listener {
 public:
  /// Clients that have not sent a hello.
  static constexpr std::uint32_t kPendingMax = 1024;
  /// Of these, those of one user; of a user that runs the node (its own, or root), twice as many.
  static constexpr std::uint32_t kUserPendingMax = 256;
  /// Of these, places reserved for users that run the node.
  static constexpr std::uint32_t kPendingKept = 64;

  /// `serve` receives each accepted client. The services, which outlive this, supply the budget of
  /// messages, the audit log, which records refusals, and the accounts of principals with their
  /// places. `secrets`: by which clients may authenticate instead of as their user; null: none.
  Listener(const Config& config, offload::Services& services, const offload::Secrets* secrets,
           std::uint64_t node_id, std::function<void(PendingClient)> serve);
  ~Listener();

  /// Binds the socket, with the configured permissions from its first connection on. Removes a
  /// socket that a dead node left, but not one of a living node, nor any other file.
  /// Errors: already_exists (a node listens there), system (detail: errno).
  Result<void> start();
  void stop();
  /// Changes the socket's permissions. Errors: not_found (its file is no longer there), system
  /// (detail: errno).
  Result<void> set_mode(std::uint32_t mode) { return socket_->set_mode(mode); }
  /// Clients that have not sent a hello.
  [[nodiscard]] std::uint32_t pending() const {
    return pending_count_.load(std::memory_order_relaxed);
  }
  /// Clients that were refused.
  [[nodiscard]] std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  /// Counts of authentication by secret.
  [[nodiscard]] const offload::AuthenticationCounts& authentication_counts() const {
    return authenticator_.counts();
  }

 private:
  struct Pending {
    memory::Descriptor socket;
    std::uint64_t until_ns;
    std::uint32_t user;
    LocalAuthenticator::Proof proof{};
  };
  void run();
  void accept_all();
  bool reject();
  void rest();
  void greet(int socket);
  Result<std::optional<PendingClient>> take(Pending& pending, const base::PeerUser& peer,
                                            const ClientPacket& packet);
  Result<PendingClient> take_hello(Pending& pending, const base::PeerUser& peer,
                                   const wire::Hello& hello);
  void end(std::unordered_map<int, Pending>::iterator at);
  void refuse_client(int socket, const Error& error);
  void audit_refusal(int socket, std::string_view act, const std::string& name, const Error& error);
  void drop_late();
  [[nodiscard]] bool runs_node(std::uint32_t user) const;
  [[nodiscard]] std::optional<Error> denied_to_wait(std::uint32_t user) const;
  [[nodiscard]] Result<std::unique_ptr<offload::Connection>> admit(const wire::Hello& hello,
                                                                   const offload::Access& access,
                                                                   const std::string& principal);

  const Config& config_;
  const base::KnownUsers users_ = base::known_users();
  const offload::Secrets* const secrets_;
  LocalAuthenticator authenticator_;
  offload::Services& services_;
  std::function<void(PendingClient)> serve_;
  std::optional<fabric::shm::ListeningSocket> socket_;
  memory::Descriptor epoll_;
  EventFd wake_event_;
  memory::Descriptor spare_;  // reserve, to refuse clients when no descriptor is left
  bool resting_ = false;
  bool waits_to_refuse_ = false;  // a client with a wrong proof
  std::unordered_map<int, Pending> pending_;
  std::unordered_map<std::uint32_t, std::uint32_t> pending_of_user_;
  std::atomic<std::uint32_t> pending_count_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> refused_{0};
  std::thread thread_;
};

}  // namespace espalier::node
