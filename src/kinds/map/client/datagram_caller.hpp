// SPDX-License-Identifier: Apache-2.0
// Gets, floors and short scans of one thread by datagrams: a session of the thread's response ring,
// and a socket.
//
// Gets that datagrams cannot serve go by the rings: long values, keys of other nodes, and gets
// whose retransmissions ran out. After such a loss the address is validated again; if that fails
// too, a new session is opened. Failures back off exponentially.
//
// Thread: one at a time: that of the session.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "channel/rings/remote_pipeline.hpp"
#include "kinds/map/client/datagram_gets.hpp"
#include "kinds/map/client/udp_wire.hpp"
#include "reach/walk_traffic.hpp"

namespace espalier::client {

class DatagramCaller final : public LanePart {
 public:
  /// Opens a session with the node, if there is none. Cost: one round trip by the rings.
  /// Errors: unsupported (the node takes no datagrams, or there is no libcrypto), connection_lost,
  /// not_permitted, system.
  Result<void> open(RemoteRequests& requests, NodeConnection& connection);
  /// Whether it may be asked for so: a get or a floor, and a scan forward with a limit of at most
  /// kDatagramItemsMax.
  [[nodiscard]] static bool serves(const Request& read);
  /// Does one of a map, and calls the handler as any read does. Returns false if it goes by the
  /// rings instead: then the handler was not called. Requires: serves().
  [[nodiscard]] bool run(RemoteRequests& requests, NodeConnection& connection, std::uint32_t map,
                         const Request& read, Handler& handler);
  /// What all its gets took: reads are gets that were answered, waits all that were sent.
  [[nodiscard]] tree::WalkTraffic traffic() const;

 private:
  [[nodiscard]] bool is_ready(RemoteRequests& requests, NodeConnection& connection);
  [[nodiscard]] bool answer(const Request& read, const wire::TakenReply& reply, Handler& handler);
  bool pause();
  void close();

  std::unique_ptr<UdpWire> wire_;
  std::unique_ptr<DatagramGets> gets_;  // null: no session
  bool proved_ = false;
  std::uint64_t not_before_ns_ = 0;  // another try
  std::uint64_t pause_ns_ = 0;       // before the next one
  tree::WalkTraffic traffic_;        // but for that of gets_
  std::vector<Item> items_;          // of a reply
};

}  // namespace espalier::client
