// SPDX-License-Identifier: Apache-2.0
// A raw client of a node: a socket, the memory that it hands out, and rings with arbitrary content
// (rings/testing/ring_client.hpp). It shares with the client library's connection only the transfer
// of packets.
//
// Thread: one at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "memory/shared_memory.hpp"
#include "rings/testing/ring_client.hpp"
#include "wire/handshake.hpp"

namespace espalier::test {

class RawClient {
 public:
  /// A client's first packet.
  static wire::Hello hello(const wire::ConnectionLayout& layout);
  /// Connects and sends the hello. Errors: system, and the node's reason for refusal;
  /// connection_lost (no answer).
  static Result<std::unique_ptr<RawClient>> open(const std::string& path,
                                                 const wire::ConnectionLayout& layout);

  rings::RingClient* operator->() { return rings_.get(); }
  rings::RingClient& rings() { return *rings_; }
  /// Rings the doorbell for posted requests, and wakes the worker if it sleeps.
  void ring();
  /// Sends a byte, whether the worker sleeps or not. Returns whether it could be sent.
  bool send_packet(std::string_view bytes) const;
  /// Whether the node has ended the connection.
  [[nodiscard]] bool ended() const;
  /// Waits for the next response of a ring, asleep as a correct client. Nothing: the connection has
  /// ended.
  std::optional<rings::Response> wait(std::uint32_t ring = 0);
  /// Sends one request and waits for its answer; items go into its payload.
  std::optional<rings::Response> call(const wire::RequestHeader& header, std::string_view key = {},
                                      std::string_view payload = {});

  [[nodiscard]] int socket() const { return socket_.number(); }
  /// All doorbells of the page.
  [[nodiscard]] std::byte* doorbells() const { return doorbells_.at(0); }
  [[nodiscard]] const wire::Welcome& welcome() const { return welcome_; }
  void hang_up() { socket_.close(); }

 private:
  RawClient() = default;

  memory::Descriptor socket_;
  wire::Welcome welcome_{};
  memory::SharedMemory memory_;
  memory::SharedMemory doorbells_;
  memory::SharedMemory page_;
  std::unique_ptr<rings::RingClient> rings_;
};

}  // namespace espalier::test
