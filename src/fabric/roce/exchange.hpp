// SPDX-License-Identifier: Apache-2.0
// Packet ports of one process, through shared memory: many endpoints, each on a thread of its own,
// with no kernel between them.
//
// From each port to each other one goes a ring of packets (packet_ring.hpp), made when the first is
// sent. Packets are sealed and checked all the same, for what stands between two ports may one day
// be a switch. A full ring loses packets, as networks do, and so does one to nobody.
//
// Thread: open() any; each port one at a time. Ports end before the exchange does.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "fabric/roce/port.hpp"

namespace espalier::fabric::roce {

class PortExchange {
 public:
  PortExchange();
  PortExchange(const PortExchange&) = delete;
  PortExchange& operator=(const PortExchange&) = delete;
  ~PortExchange();

  /// Errors: already_exists (a port has this address), system.
  Result<std::unique_ptr<PacketPort>> open(const PortAddress& address);

 private:
  class Mailbox;
  class Port;

  [[nodiscard]] std::shared_ptr<Mailbox> find(const PortAddress& address);

  std::mutex mutex_;
  std::vector<std::shared_ptr<Mailbox>> mailboxes_;
};

}  // namespace espalier::fabric::roce
