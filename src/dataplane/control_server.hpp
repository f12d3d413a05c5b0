// SPDX-License-Identifier: Apache-2.0
// Serves a switch's control at a UNIX socket: a line for each request, followed by as many bytes as
// the line says (control_line.hpp). A connection may make any number of requests; they are answered
// in order. Only the socket's user may connect.
//
// No peer blocks another: a partial request is buffered until it is whole, and an answer that does
// not fit into the socket is sent when its peer takes it. A peer that does not finish a request
// within seconds, or does not take an answer, is disconnected.
//
// Thread: one that serves; stop() any.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "dataplane/control_peer.hpp"
#include "dataplane/switch_control.hpp"
#include "fabric/shm/listening_socket.hpp"

namespace espalier::dataplane {

class ControlServer {
 public:
  /// `silent_ns`: as kHolderSilentNs. Errors: as ListeningSocket::open.
  static Result<std::unique_ptr<ControlServer>> open(std::string_view path, SwitchControl& control,
                                                     std::uint64_t silent_ns = kHolderSilentNs);
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  /// Serves until stop(); then all connections are closed, and what they held stays.
  void run();
  void stop();

 private:
  ControlServer(fabric::shm::ListeningSocket listening, memory::Descriptor wake,
                SwitchControl& control, std::uint64_t silent_ns)
      : listening_(std::move(listening)),
        wake_(std::move(wake)),
        control_(control),
        silent_ns_(silent_ns) {}
  [[nodiscard]] bool serve(ControlPeer& peer, std::uint64_t now_ns);
  void accept_one(std::uint64_t now_ns);
  [[nodiscard]] bool turn();
  [[nodiscard]] int wait_ms(std::uint64_t now_ns) const;
  [[nodiscard]] bool keep_quiet_one(const ControlPeer& peer, std::uint64_t now_ns);

  fabric::shm::ListeningSocket listening_;
  memory::Descriptor wake_;
  SwitchControl& control_;
  const std::uint64_t silent_ns_;
  std::vector<std::unique_ptr<ControlPeer>> peers_;
  SwitchControl::Holder last_ = SwitchControl::kNobody;  // number of a connection
};

}  // namespace espalier::dataplane
