// SPDX-License-Identifier: Apache-2.0
// The connection of TCP beside a link of datagrams. Each end introduces itself through it, for a
// provider's addresses cannot be told from a host and a port, and says nothing more; when it ends,
// so does the link, for a provider tells of nobody who is gone.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "espalier/error.hpp"
#include "fabric/roce/port.hpp"
#include "memory/shared_memory.hpp"
#include "wire/fabric_ofi_datagrams.hpp"

namespace espalier::fabric::ofi {

class Control {
 public:
  explicit Control(memory::Descriptor socket);

  /// Begins to connect. That nobody is there shows as its end. Errors: system.
  static Result<Control> dial(const roce::PortAddress& where);
  /// Where others can dial. Errors: already_exists, system.
  static Result<memory::Descriptor> listen(const roce::PortAddress& where);
  /// The address that this machine has towards another. Errors: system.
  static Result<roce::IpAddress> own_address_towards(const roce::PortAddress& where);
  /// The port that a socket has. Requires: it has one.
  static roce::PortAddress address_of(const memory::Descriptor& socket);

  /// What is to be told, once it can be.
  void introduce(const wire::ofi::Introduction& own) { own_ = own; }
  /// Does what can be done without waiting.
  void turn();
  /// What the peer has told; nothing before it has told all of it. It means nothing yet.
  [[nodiscard]] std::optional<wire::ofi::Introduction> heard() const;
  /// The peer has hung up, or says what it may not.
  [[nodiscard]] bool is_over() const { return over_ || !socket_; }
  void hang_up() { socket_.close(); }
  [[nodiscard]] int number() const { return socket_.number(); }

 private:
  void say();
  void listen_on();

  memory::Descriptor socket_;
  wire::ofi::Introduction own_{};
  std::size_t said_ = 0;  // bytes
  wire::ofi::Introduction peer_{};
  std::size_t got_ = 0;  // bytes
  bool over_ = false;
};

}  // namespace espalier::fabric::ofi
