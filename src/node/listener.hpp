// SPDX-License-Identifier: Apache-2.0
// The UNIX socket of a node: takes clients in, and hands each to a worker once it has said hello.
//
// A client that says nothing, or nonsense, holds one descriptor for a few seconds and nothing else.
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
  /// Clients that may be here and have not said hello.
  static constexpr std::uint32_t kPendingMax = 1024;
  /// Of these, those of one user; of one that runs the node, the node's own or root, twice as many.
  static constexpr std::uint32_t kUserPendingMax = 256;
  /// Of these, what is kept for users that run the node.
  static constexpr std::uint32_t kPendingKept = 64;

  /// `serve` gets each client that is to be served. Of the services, which outlive this, it needs
  /// the budget of messages, the audit log, in which is who is refused, the accounts of principals,
  /// and their places.
  /// `secrets`: what clients may prove to know instead of coming as their user; null: nothing.
  Listener(const Config& config, offload::Services& services, const offload::Secrets* secrets,
           std::uint64_t node_id, std::function<void(PendingClient)> serve);
  ~Listener();

  /// Binds the socket, with the permissions of the configuration from its first connection on. A
  /// socket that a dead node left is removed; a living node's is not, and neither is anything else.
  /// Errors: already_exists (a node listens there), system (detail: errno).
  Result<void> start();
  void stop();
  /// Gives the socket other permissions. Errors: not_found (its file does not lie there any more),
  /// system (detail: errno).
  Result<void> set_mode(std::uint32_t mode) { return socket_->set_mode(mode); }
  /// Clients that have not said hello.
  [[nodiscard]] std::uint32_t pending() const {
    return pending_count_.load(std::memory_order_relaxed);
  }
  /// Clients that were refused, and why is between them and the node.
  [[nodiscard]] std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  /// Of clients that proved who they are, and of those that did not.
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
  memory::Descriptor spare_;  // that those can be told for whom there is no other
  bool resting_ = false;
  bool waits_to_refuse_ = false;  // a client whose proof was wrong
  std::unordered_map<int, Pending> pending_;
  std::unordered_map<std::uint32_t, std::uint32_t> pending_of_user_;
  std::atomic<std::uint32_t> pending_count_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> refused_{0};
  std::thread thread_;
};

}  // namespace espalier::node
