// SPDX-License-Identifier: Apache-2.0
// A UDP socket that exchanges datagrams with one address.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "espalier/error.hpp"
#include "fabric/roce/port.hpp"
#include "kinds/map/client/datagram_wire.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::client {

class UdpWire final : public DatagramWire {
 public:
  /// Errors: system (no route leads there; no descriptor).
  static Result<std::unique_ptr<UdpWire>> open(const fabric::roce::PortAddress& node);

  void send(std::span<const std::byte> datagram) override;
  std::optional<std::size_t> receive(std::span<std::byte> into) override;
  void wait(std::uint64_t until_ns) override;
  [[nodiscard]] std::uint64_t now_ns() const override;

 private:
  explicit UdpWire(memory::Descriptor socket) : socket_(std::move(socket)) {}
  memory::Descriptor socket_;
};

}  // namespace espalier::client
