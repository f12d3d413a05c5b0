// SPDX-License-Identifier: Apache-2.0
// The server end of links, for manual tests: it offers memory to every client, and echoes messages.
// One-sided requests need nothing of it but progress.
//
// A receive and the echo of its message share a slot: the echo is sent from the received bytes, and
// the slot is posted as a receive again when the send has completed. So a client that sends faster
// than echoes leave has to wait.
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

  /// `spin`: never sleep, which lowers latency and takes a core. The endpoint, which listens,
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
