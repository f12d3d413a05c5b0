// SPDX-License-Identifier: Apache-2.0
// One-sided access of one thread: a second connection for READs, shared by all maps, and for each
// map a reader with a lease, which follows the map's mapping feed while in use. Requests to the
// node go by the thread's rings.
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
  /// Whether one-sided READs can serve this operation.
  [[nodiscard]] static bool serves(Op op);

  /// `lanes`: walks in flight on each map.
  OneSidedMaps(std::uint32_t lanes, const WalkOptions& options);
  ~OneSidedMaps();
  OneSidedMaps(const OneSidedMaps&) = delete;
  OneSidedMaps& operator=(const OneSidedMaps&) = delete;

  /// The reader of a map, with a connection, the map's view and a lease; made at first use. A
  /// failure is cached for a while and returned immediately: a handshake with a node that does not
  /// answer may take seconds.
  /// Cost: the first time a handshake and a request. Requires: nothing is pending at `requests`.
  /// Errors: unsupported (the node or the map offers no one-sided access, or none by key),
  /// not_found, connection_lost, corrupt, system.
  Result<place::OneSidedReader*> open(RemoteRequests& requests, NodeConnection& connection,
                                      std::uint32_t map);
  /// The lowest cached node on the way to a key; none: the map was not read.
  [[nodiscard]] wire::Ref remembered(std::uint32_t map, std::string_view key);
  /// Sends the lease's due request to the node, if any, with the samples of leaves that were read.
  /// Requires: as open(); the lease is that of one of the readers.
  void renew(RemoteRequests& requests, place::LeaseGuard& lease);
  /// Renews leases while the thread of the rings is busy: sends due renewals and takes answers, for
  /// at most a millisecond. Between the first call and await_kept() the rings serve nothing else.
  void keep(RemoteRequests& requests);
  /// Waits for the answers to requests of keep().
  void await_kept(RemoteRequests& requests);
  /// Sleeps until something may have arrived, for at most a millisecond.
  void wait();
  /// Raises the number of walks in flight per map to at least `lanes`. Requires: no reader has
  /// walks.
  void widen(std::uint32_t lanes);
  /// Closes the connection and all readers; open() makes others. Requires: no reader has walks.
  void close();
  /// Waits for READs and bytes read, of all readers including closed ones.
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
  // The last failure to open a map, and when it expires.
  Error failure_{};
  std::uint32_t failed_map_ = 0;
  std::uint64_t failed_until_ns_ = 0;
  // Readers are destroyed before their link, and the link before the port, which keeps memory that
  // READs of closed readers still write to.
  std::optional<place::ReadPort> port_;
  std::unique_ptr<SideLink> link_;
  std::unique_ptr<place::NodeCache> cache_;  // of nodes read by this link
  std::unordered_map<std::uint32_t, std::unique_ptr<OpenedMap>> maps_;
  std::vector<place::LeaseGuard*> kept_;  // requested by keep(), by ticket; null: answered
  tree::WalkTraffic ended_;               // of closed readers
};

}  // namespace espalier::client
