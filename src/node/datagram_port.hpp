// SPDX-License-Identifier: Apache-2.0
// The port of a node at which gets come as datagrams of UDP (wire/datagram.hpp): one socket, and a
// thread that reads maps for whoever has a session (engine/datagram_sessions.hpp).
//
// The thread takes what has come, up to as many as are walked together, walks, and sends. Without
// anything it looks for a while as workers do, then sleeps at its socket.
//
// Thread: open() and the end one at a time; all else from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "engine/datagram_sessions.hpp"
#include "kinds/map/offload/datagram_reads.hpp"
#include "memory/shared_memory.hpp"
#include "node/event_fd.hpp"

namespace espalier::node {

class DatagramPort {
 public:
  struct Terms {
    offload::DatagramSource at;  ///< UDP port 0: any that is free
    std::uint32_t shard = 0;     ///< of counters
    std::uint64_t spin_ns = 0;   ///< for which it looks before it sleeps
  };
  /// Takes the port, and makes what sessions are opened by; serves until it ends. Before anybody
  /// else uses the services.
  /// Errors: already_exists (somebody is at this port), system, unsupported (no libcrypto).
  static Result<std::unique_ptr<DatagramPort>> open(const Terms& terms,
                                                    offload::Services& services);
  ~DatagramPort();
  DatagramPort(const DatagramPort&) = delete;
  DatagramPort& operator=(const DatagramPort&) = delete;

  /// From now on. Thread: any.
  void set_spin_ns(std::uint64_t spin_ns) { spin_ns_.store(spin_ns, std::memory_order_relaxed); }
  /// With the port that was free for it to take.
  [[nodiscard]] const offload::DatagramSource& address() const { return sessions_.port(); }

 private:
  struct Burst;
  DatagramPort(memory::Descriptor socket, const Terms& terms, offload::Services& services,
               offload::DatagramSessions& sessions);
  Result<void> start();
  void run();
  [[nodiscard]] bool take();
  [[nodiscard]] bool send();
  void spin_or_sleep(bool moved);

  memory::Descriptor socket_;
  EventFd wake_event_;
  std::atomic<std::uint64_t> spin_ns_;
  offload::DatagramSessions& sessions_;
  offload::DatagramReads reads_;
  std::unique_ptr<Burst> burst_;
  std::uint64_t quiet_since_ns_ = 0;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace espalier::node
