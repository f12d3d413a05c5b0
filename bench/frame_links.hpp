// SPDX-License-Identifier: Apache-2.0
// The two memif links of a switch, to a client and to a node, both held by one program that sends
// frames into the one and takes them from the other.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fabric/memif/link.hpp"
#include "fabric/memif/ring.hpp"
#include "fabric/shm/listening_socket.hpp"

namespace espalier::bench {

class FrameLinks {
 public:
  /// Most frames in flight: fewer than a ring of either link holds, so a switch that drops one has
  /// no lack of room.
  static constexpr std::size_t kUnderWayMax = 256;
  static constexpr std::size_t kBurst = fabric::memif::Arrivals::kFramesMax;

  /// Listens as the node at this path. Errors: throws std::runtime_error.
  explicit FrameLinks(const std::string& node);
  /// Brings both links up, through a switch whose client socket is otherwise unused; calls `turn`
  /// meanwhile, for a switch without a thread of its own. Errors: as above, after ten seconds.
  void connect(const std::string& clients, const std::function<void()>& turn);

  /// Sends a frame without checking the room after the switch. False: no room in the first ring.
  bool send(std::span<const std::byte> frame);
  /// Publishes sent frames to the switch, and wakes it.
  void publish();
  /// At most a burst of frames that have arrived at the node; valid until the next call.
  [[nodiscard]] std::span<const std::span<std::byte>> receive();

 private:
  fabric::shm::ListeningSocket listening_;
  std::unique_ptr<fabric::memif::MemifLink> client_;
  std::unique_ptr<fabric::memif::MemifLink> node_;
  fabric::memif::Arrivals arrivals_;
  std::vector<std::span<std::byte>> frames_;
};

}  // namespace espalier::bench
