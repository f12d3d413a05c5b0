// SPDX-License-Identifier: Apache-2.0
// What carries a client's datagrams to one node and back: a socket (udp_wire.hpp), or whatever a
// test puts in its place. Datagrams may be lost, come twice, late, in any order, and from anybody.
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

  /// Whether it has come any further, nobody says.
  virtual void send(std::span<const std::byte> datagram) = 0;
  /// One that has come, in `into`; of a longer one as much as fits. Nothing: there is none now.
  virtual std::optional<std::size_t> receive(std::span<std::byte> into) = 0;
  /// Until receive() may find something, or about this moment of now_ns().
  virtual void wait(std::uint64_t until_ns) = 0;
  [[nodiscard]] virtual std::uint64_t now_ns() const = 0;
};

}  // namespace espalier::client
