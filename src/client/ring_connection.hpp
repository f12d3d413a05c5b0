// SPDX-License-Identifier: Apache-2.0
// A connection to a node on this machine: its memory, which both map, and a socket.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "client/node_connection.hpp"
#include "memory/shared_memory.hpp"
#include "rings/ring.hpp"
#include "wire/ring.hpp"

namespace espalier::client {

class RingConnection final : public NodeConnection {
 public:
  /// Connects to the node at this UNIX socket, which runs as this user or root, as `server_user`,
  /// or where nobody else could (base/trusted_server.hpp). Errors: not_permitted (that it does
  /// not), system (detail: errno; nobody listens, or
  /// not for us), connection_lost (it ended the connection before it was one), corrupt (what
  /// listens is no node), and why the node refused: unsupported, too_many_participants.
  static Result<std::shared_ptr<RingConnection>> open(
      const std::string& path, std::optional<std::uint32_t> server_user = {});

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
  Result<void> say_hello(const std::string& path, std::optional<std::uint32_t> server_user);
  Result<void> map_memory(const wire::ConnectionLayout& layout, std::uint32_t doorbell,
                          std::uint32_t worker, memory::Descriptor (&descriptors)[3]);

  memory::Descriptor socket_;
  memory::SharedMemory doorbells_;
  memory::SharedMemory node_page_;
  std::byte* doorbell_ = nullptr;
  const std::byte* worker_sleeps_ = nullptr;
  bool node_asymmetric_ = false;
  bool asymmetric_ = false;  // and so are we
};

}  // namespace espalier::client
