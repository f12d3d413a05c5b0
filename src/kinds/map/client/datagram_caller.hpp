// SPDX-License-Identifier: Apache-2.0
// Gets of one thread by datagrams: a session bound to the thread's response ring, and a socket.
//
// Gets that datagrams cannot serve go by the rings: long values, keys of other nodes, and gets
// whose retransmissions ran out. After such a loss the address is validated again; if that fails
// too, a new session is opened. Failures back off exponentially.
//
// Thread: one at a time: that of the session.
#pragma once

#include <cstdint>
#include <memory>

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
  /// Runs a get of a map and completes it at the handler. Returns false if the get must go by the
  /// rings instead: the handler was not called.
  [[nodiscard]] bool run(RemoteRequests& requests, NodeConnection& connection, std::uint32_t map,
                         const Request& get, Handler& handler);
  /// Totals of all its gets: reads are answered gets, waits are requests sent.
  [[nodiscard]] tree::WalkTraffic traffic() const;

 private:
  [[nodiscard]] bool is_ready(RemoteRequests& requests, NodeConnection& connection);
  bool pause();
  void close();

  std::unique_ptr<UdpWire> wire_;
  std::unique_ptr<DatagramGets> gets_;  // null: no session
  bool proved_ = false;
  std::uint64_t not_before_ns_ = 0;  // earliest time of the next attempt
  std::uint64_t pause_ns_ = 0;       // current backoff
  tree::WalkTraffic traffic_;        // without that of gets_
};

}  // namespace espalier::client
