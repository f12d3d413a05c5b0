// SPDX-License-Identifier: Apache-2.0
// The maps that one thread walks alone: a second connection for its READs, which all of them share,
// and for each map a reader with a lease, which follows the map's mapping feed while it is used.
// What is asked of the node goes by the thread's rings.
//
// Thread: one at a time: that of the rings.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "channel/rings/remote_pipeline.hpp"
#include "channel/rings/side_link.hpp"
#include "channel/rings/walk_options.hpp"
#include "kinds/map/calls.hpp"
#include "kinds/map/remote/one_sided_reader.hpp"
#include "wire/session_calls.hpp"

namespace espalier::client {

class OneSidedMaps {
 public:
  using Reader = place::OneSidedReader;
  static constexpr bool kAskedForAlone = true;
  /// Whether it is a read that a client can do alone.
  [[nodiscard]] static bool serves(Op op);

  /// `lanes`: walks in flight on each map.
  OneSidedMaps(std::uint32_t lanes, const WalkOptions& options);
  ~OneSidedMaps();
  OneSidedMaps(const OneSidedMaps&) = delete;
  OneSidedMaps& operator=(const OneSidedMaps&) = delete;

  /// The reader of a map, with a connection, the map's view and a lease; once made, it is kept.
  /// A failure is remembered for a while, and told again at once: a handshake with a node that does
  /// not answer may take seconds.
  /// Cost: the first time a handshake and a request. Requires: nothing pends at `requests`.
  /// Errors: unsupported (the node or the map offers no one-sided access, or none by key),
  /// not_found, connection_lost, corrupt, system.
  Result<place::OneSidedReader*> open(RemoteRequests& requests, NodeConnection& connection,
                                      std::uint32_t map);
  /// The lowest node on the way to a key that is remembered of a map; none: it was not read.
  [[nodiscard]] wire::Ref remembered(std::uint32_t map, std::string_view key);
  /// Asks the node for what the lease needs now, if anything, and tells it which leaves were read.
  /// Requires: as open(); it is the lease of one of the readers.
  void renew(RemoteRequests& requests, place::LeaseGuard& lease);
  /// Keeps leases while the thread of the rings is elsewhere: asks for renewals that are due, and
  /// takes those that have come, for a millisecond at most. Between the first call and
  /// await_kept() the rings serve nothing else.
  void keep(RemoteRequests& requests);
  /// Waits for what keep() has asked.
  void await_kept(RemoteRequests& requests);
  /// Lets a thread sleep until something may have come, for a millisecond at most.
  void wait();
  /// From here on at least so many walks are in flight on each map. Requires: no reader has walks.
  void widen(std::uint32_t lanes);
  /// Ends the connection and all readers; open() makes others. Requires: no reader has walks.
  void close();
  /// READs that were waited for, and bytes that came, of all readers, those that are gone too.
  [[nodiscard]] tree::WalkTraffic traffic() const;

 private:
  struct OpenedMap;
  static void ask_renewal(RemoteRequests& requests, std::uint32_t map,
                          place::OneSidedReader& reader, const place::LeaseGuard::Asked& asked);
  static void take_renewal(place::LeaseGuard& lease, const Result<session_calls::Renewed>& renewed);
  void take_kept(RemoteRequests& requests);

  Result<place::OneSidedReader*> open_anew(RemoteRequests& requests, NodeConnection& connection,
                                           std::uint32_t map);
  static void follow(RemoteRequests& requests, std::uint32_t map, place::OneSidedReader& reader);

  std::uint32_t lanes_;
  const WalkOptions options_;
  // The last failure to open a map, and until when it is not tried again.
  Error failure_{};
  std::uint32_t failed_map_ = 0;
  std::uint64_t failed_until_ns_ = 0;
  // Readers end before the link that they read by, and that before the port, which keeps what READs
  // of readers that have ended still write to.
  std::optional<place::ReadPort> port_;
  std::unique_ptr<SideLink> link_;
  std::unique_ptr<place::NodeCache> cache_;  // of what is read by this link
  std::unordered_map<std::uint32_t, std::unique_ptr<OpenedMap>> maps_;
  std::vector<place::LeaseGuard*> kept_;  // that keep() has asked for, by ticket; null: answered
  tree::WalkTraffic ended_;               // of readers that are gone
};

}  // namespace espalier::client
