// SPDX-License-Identifier: Apache-2.0
// Reads of one thread by one-sided READs: a reader for each map, and a lease that goes by the
// thread's rings.
//
// A reader that cannot go on (its lease was lost, its pair has failed, a map was dropped) is let go
// of, and the next read makes another. What a walk could not answer goes by the rings, as all does
// without one-sided access, but for scans that have delivered something: these end with
// `contended`.
//
// While a scan's sink runs, which may take long, the keepalive thread of the process renews the
// leases: else the node would take the walk for dead, and what it reads from it.
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

  /// Does a read of a map, and tells the handler as any read does. Returns false if it goes by the
  /// rings instead: then the handler was told nothing.
  /// Errors: unsupported (the node or the map offers no one-sided access), system.
  Result<bool> run(RemoteRequests& requests, NodeConnection& connection, std::uint32_t map,
                   const Request& request, Handler& handler);
  /// The same of a scan that is cut at these keys, as of one version. Cost: besides, one round trip
  /// for the version. Errors: the same.
  Result<bool> run_parts(RemoteRequests& requests, NodeConnection& connection, std::uint32_t map,
                         const Request& scan, const std::vector<std::string>& borders,
                         Handler& handler);

  /// Where a read of a map may begin that the node is asked for: what its own reads have left
  /// behind.
  [[nodiscard]] wire::Ref remembered(std::uint32_t map, std::string_view key) {
    return maps_.remembered(map, key);
  }
  /// What all its reads took.
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
    std::uint32_t in_vain = 0;  // since the walks last asked for something
    std::uint64_t trips = 0;    // as of the last one
  };

  void have_keepalive();
  bool look(RemoteRequests& requests, place::OneSidedReader& reader, Looks& looks);
  void walk(RemoteRequests& requests, place::OneSidedReader& reader);
  bool take_parts(RemoteRequests& requests, place::OneSidedReader& reader, const Request& scan,
                  const std::vector<std::string>& borders, Forward& forward);

  OneSidedMaps maps_;
  std::uint64_t by_rings_ = 0;                  // reads that went by the rings after all
  std::shared_ptr<KeepaliveThread> keepalive_;  // of who has scanned
  std::mutex mutex_;                            // a scan's, but for the time of its sink
  RemoteRequests* in_sink_ = nullptr;           // of the scan whose sink runs; guarded by mutex_
};

}  // namespace espalier::client
