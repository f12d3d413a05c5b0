// SPDX-License-Identifier: Apache-2.0
// The UDP port of a node for gets as datagrams (wire/datagram.hpp): one socket, and a thread that
// reads maps for clients with a session (engine/datagram_sessions.hpp).
//
// The thread receives a batch, as many as are walked together, walks, and sends. Without work it
// spins for a while like workers, then sleeps at its socket.
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
    std::uint32_t shard = 0;     ///< this thread's number among counters
    std::uint64_t spin_ns = 0;   ///< how long it spins before it sleeps
  };
  /// Binds the port, and creates the state by which sessions are opened; serves until its
  /// destruction.
  /// Requires: no other thread uses the services yet.
  /// Errors: already_exists (the port is in use), system, unsupported (no libcrypto).
  static Result<std::unique_ptr<DatagramPort>> open(const Terms& terms,
                                                    offload::Services& services);
  ~DatagramPort();
  DatagramPort(const DatagramPort&) = delete;
  DatagramPort& operator=(const DatagramPort&) = delete;

  /// Applies from now on. Thread: any.
  void set_spin_ns(std::uint64_t spin_ns) { spin_ns_.store(spin_ns, std::memory_order_relaxed); }
  /// The address, with the port that it got.
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
