// SPDX-License-Identifier: Apache-2.0
// Reads of one thread by one-sided READs: a reader for each map, and a lease renewed by the
// thread's rings.
//
// If a walk fails (its lease was lost, its queue pair failed, the map was dropped), all readers are
// closed and the read is tried once more with new ones, then by the rings, like all reads without
// one-sided access. Scans that have delivered items are not repeated: these end with `contended`.
//
// While a scan's sink runs, which may take long, the keepalive thread of the process renews the
// leases: otherwise the node would expire the lease, and reclaim what the walk reads.
//
// Thread: one at a time: that of the session. keep() is the keepalive thread's.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "channel/rings/keepalive_thread.hpp"
#include "channel/rings/remote_pipeline.hpp"
#include "kinds/map/client/one_sided_maps.hpp"

namespace espalier::client {

class OneSidedCaller final : public LanePart, public KeepaliveTarget {
 public:
  explicit OneSidedCaller(const WalkOptions& options) : maps_(1, options) {}
  ~OneSidedCaller() override;
  OneSidedCaller(const OneSidedCaller&) = delete;
  OneSidedCaller& operator=(const OneSidedCaller&) = delete;

  /// Runs a read of a map and completes it at the handler. Returns false if the read must go by the
  /// rings instead: the handler was not called.
  /// Errors: unsupported (the node or the map offers no one-sided access), system.
  Result<bool> run(RemoteRequests& requests, NodeConnection& connection, std::uint32_t map,
                   const Request& request, Handler& handler);
  /// Runs a scan split at these keys, at one version. Cost: an additional round trip for the
  /// version. Errors: as run().
  Result<bool> run_parts(RemoteRequests& requests, NodeConnection& connection, std::uint32_t map,
                         const Request& scan, const std::vector<std::string>& borders,
                         Handler& handler);

  /// A hint to the node for a read: the lowest node cached by the thread's own reads.
  [[nodiscard]] wire::Ref remembered(std::uint32_t map, std::string_view key) {
    return maps_.remembered(map, key);
  }
  /// Totals of all its reads.
  [[nodiscard]] tree::WalkTraffic traffic() const {
    tree::WalkTraffic traffic = maps_.traffic();
    traffic.by_rings = by_rings_;
    return traffic;
  }
  void keep() override;

 private:
  class Forward;
  class Held;
  struct Looks {
    std::uint32_t in_vain = 0;  // polls in vain since the walks' last READ
    std::uint64_t trips = 0;    // round trips at the last poll
  };

  void have_keepalive();
  bool look(RemoteRequests& requests, place::OneSidedReader& reader, Looks& looks);
  void walk(RemoteRequests& requests, place::OneSidedReader& reader);
  bool take_parts(RemoteRequests& requests, place::OneSidedReader& reader, const Request& scan,
                  const std::vector<std::string>& borders, Forward& forward);

  OneSidedMaps maps_;
  std::uint64_t by_rings_ = 0;                  // reads repeated by the rings
  std::shared_ptr<KeepaliveThread> keepalive_;  // set once this has scanned
  std::mutex mutex_;                            // held during scans, except while a sink runs
  RemoteRequests* in_sink_ = nullptr;           // of the scan whose sink runs; guarded by mutex_
};

}  // namespace espalier::client
