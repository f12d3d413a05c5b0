// SPDX-License-Identifier: Apache-2.0
// A connection to a node on this machine: shared memory that both map, and a UNIX socket.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "channel/rings/known_secret.hpp"
#include "channel/rings/node_connection.hpp"
#include "memory/shared_memory.hpp"
#include "rings/ring.hpp"
#include "wire/ring.hpp"

namespace espalier::client {

struct RingConnectionOptions {
  /// A user as which the node may run, beside this user and root (base/trusted_server.hpp).
  std::optional<std::uint32_t> server_user{};
  /// The secret for mutual authentication; null: none.
  std::shared_ptr<const KnownSecret> secret{};
  std::uint32_t timeout_ms = 10'000;  ///< for each answer of the node while connecting
};

class RingConnection final : public NodeConnection {
 public:
  /// Connects to the node at this UNIX socket. The node must run as this user, as root or as
  /// `server_user`, or at a path where no other user could have bound the socket
  /// (base/trusted_server.hpp). Errors: not_permitted (detail 7: it does not; 5, 6: one side does
  /// not know the secret), system (detail: errno; no process listens, or access is denied),
  /// connection_lost (the node closed the socket during the handshake), corrupt (the listener is
  /// not a node), and the node's reason for refusal: unsupported, too_many_participants.
  static Result<std::shared_ptr<RingConnection>> open(const std::string& path,
                                                      const RingConnectionOptions& options = {});

  [[nodiscard]] rings::SlotReader responses(std::uint32_t ring) const override;
  [[nodiscard]] std::byte* sleeping_word(std::uint32_t ring) const;

  /// Cost: a store, a load; a system call if the node sleeps.
  void ring(std::uint64_t tail) override;
  void fall_asleep(std::uint32_t ring, const rings::SlotReader& responses,
                   std::uint64_t longest_ns) override;
  bool ask_lost() override;
  void hang_up() override;

 private:
  RingConnection() : NodeConnection(false) {}
  Result<void> connect(const std::string& path, const RingConnectionOptions& options);
  Result<void> prove(const KnownSecret& secret);
  Result<void> say_hello();
  Result<void> map_memory(const wire::ConnectionLayout& layout, std::uint32_t doorbell,
                          std::uint32_t worker, memory::Descriptor (&descriptors)[3]);

  memory::Descriptor socket_;
  memory::SharedMemory doorbells_;
  memory::SharedMemory node_page_;
  std::byte* doorbell_ = nullptr;
  const std::byte* worker_sleeps_ = nullptr;
  bool node_asymmetric_ = false;
  bool asymmetric_ = false;  // so is this process
};

}  // namespace espalier::client
