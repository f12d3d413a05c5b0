// SPDX-License-Identifier: Apache-2.0
// The asked end of links, for those who try one by hand: it offers memory to everybody who
// connects, and sends messages back. One-sided work needs nothing of it but progress.
//
// A receive and the echo of what it took share a slot: its bytes are sent from where they came to,
// and it is a receive again when they have left. So whoever sends faster than echoes go waits.
//
// Thread: run() takes one; stop() any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "fabric/completion_queue.hpp"
#include "fabric/endpoint.hpp"
#include "fabric/queue_pair.hpp"
#include "fabric/receive_queue.hpp"
#include "wire/fabric_greeting.hpp"

namespace espalier::tools {

class FabricServer {
 public:
  static constexpr std::uint32_t kEchoBytesMax = 16384;
  static constexpr std::size_t kPairsMax = 1024;

  struct Counters {
    std::uint64_t connections = 0;
    std::uint64_t rejected = 0;
    std::uint64_t echoes = 0;
    std::uint64_t echo_bytes = 0;
  };

  /// `spin`: never sleep, which answers sooner and takes a core. The endpoint, which listens,
  /// outlives the server.
  FabricServer(fabric::Endpoint& endpoint, const fabric::RemoteRegion& region,
               fabric::RemoteRights rights, bool spin);

  /// Serves until stop().
  void run();
  /// Thread: any.
  void stop();
  /// Requires: run() has returned.
  [[nodiscard]] const Counters& counters() const { return counters_; }

 private:
  static constexpr std::uint32_t kSlots = 64;

  void post_receive(std::uint64_t slot);
  void take(const fabric::Completion& completion);
  void forget_ended();
  void accept_all();

  fabric::Endpoint& endpoint_;
  wire::FabricGreeting greeting_;
  bool spin_;
  std::atomic<bool> stop_{false};
  Counters counters_;
  std::vector<std::byte> room_;
  fabric::CompletionQueue queue_;
  fabric::ReceiveQueue receives_;
  std::unordered_map<std::uint32_t, std::unique_ptr<fabric::QueuePair>> pairs_;  // by number
};

}  // namespace espalier::tools
