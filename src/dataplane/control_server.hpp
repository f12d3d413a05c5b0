// SPDX-License-Identifier: Apache-2.0
// Serves a switch's control at a UNIX socket: a line for each request, and so many bytes behind it
// where the line says so (control_line.hpp). A connection asks as often as it likes, and its
// requests are answered one after the other. The socket is its user's alone.
//
// Nobody waits for another one: what comes of a request is gathered until it is whole, and what an
// answer does not bring out at once goes when its peer takes it. Who does not bring a request to
// its end within seconds, or does not take an answer, is let go.
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

  /// Until stop(); then all connections are over, and what they held stays.
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
