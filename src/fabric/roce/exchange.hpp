// SPDX-License-Identifier: Apache-2.0
// Packet ports of one process, through shared memory: many endpoints, each on a thread of its own,
// with no kernel between them.
//
// From each port to each other one leads a ring of packets (packet_ring.hpp), made when the first
// is sent. Packets are sealed and checked all the same, for a switch may stand between two ports. A
// full ring loses packets, as networks do; so does sending to an address without a port.
//
// Thread: open() any; each port one at a time. Ports end before the exchange does.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "fabric/roce/port.hpp"

namespace espalier::fabric::roce {

class PortExchange {
 public:
  /// A switch on the path, which may change packets, or redirect them: it sees each, sealed.
  using Middle =
      std::function<void(const PortAddress& from, const PortAddress& to, std::span<std::byte> ib)>;

  /// `make_middle`: called for each port; what it makes sees what this port sends, in the thread of
  /// the port, and ends with it. Null: nothing stands on the way.
  explicit PortExchange(std::function<Middle()> make_middle = nullptr);
  PortExchange(const PortExchange&) = delete;
  PortExchange& operator=(const PortExchange&) = delete;
  ~PortExchange();

  /// Errors: already_exists (a port has this address), system.
  Result<std::unique_ptr<PacketPort>> open(const PortAddress& address);

 private:
  class Mailbox;
  class Port;

  [[nodiscard]] std::shared_ptr<Mailbox> find(const PortAddress& address);

  const std::function<Middle()> make_middle_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Mailbox>> mailboxes_;
};

}  // namespace espalier::fabric::roce
