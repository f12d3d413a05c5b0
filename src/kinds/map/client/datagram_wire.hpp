// SPDX-License-Identifier: Apache-2.0
// Carries a client's datagrams to one node and back: a socket (udp_wire.hpp), or a simulation in
// tests. Datagrams may be lost, duplicated, delayed, reordered, or come from any peer.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace espalier::client {

class DatagramWire {
 public:
  DatagramWire() = default;
  DatagramWire(const DatagramWire&) = delete;
  DatagramWire& operator=(const DatagramWire&) = delete;
  virtual ~DatagramWire() = default;

  /// Sends without a confirmation of delivery.
  virtual void send(std::span<const std::byte> datagram) = 0;
  /// Copies a received datagram to `into`, truncated if longer. Nothing: none has arrived.
  virtual std::optional<std::size_t> receive(std::span<std::byte> into) = 0;
  /// Waits until receive() may succeed, or about until this time of now_ns().
  virtual void wait(std::uint64_t until_ns) = 0;
  [[nodiscard]] virtual std::uint64_t now_ns() const = 0;
};

}  // namespace espalier::client
