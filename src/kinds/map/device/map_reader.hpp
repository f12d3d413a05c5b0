// SPDX-License-Identifier: Apache-2.0
// One-sided access of one device worker: a queue pair to the host's memory, shared by all maps, and
// for each map a reader with a lease.
//
// They fail together: the host ends a session's leases with its key. A failed reader is destroyed
// when its walks have ended, and versions held by it are lost.
//
// Thread: one: that of the worker.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/clock.hpp"
#include "channel/device/host_reads.hpp"
#include "kinds/map/client/one_sided_opening.hpp"
#include "kinds/map/offload/maps_elsewhere.hpp"
#include "kinds/map/offload/snapshot.hpp"
#include "kinds/map/remote/one_sided_reader.hpp"

namespace espalier::device {

/// Adds the growth of one of this thread's totals to a counter.
class Counted {
 public:
  void publish(std::atomic<std::uint64_t>& counter, std::uint64_t now) {
    const std::uint64_t before = std::exchange(published_, now);
    if (now != before) counter.fetch_add(now - before, std::memory_order_relaxed);
  }

 private:
  std::uint64_t published_ = 0;
};

struct MapReadsOptions {
  /// Limit on the cache of interior nodes, for all maps.
  std::uint64_t cache_bytes = 0;
  /// Whether roots are cached; if not, nothing is.
  bool pins_roots = true;
  /// The weight of each reader's balancer.
  std::uint32_t balance = 0;
  /// The clock of leases.
  std::function<std::uint64_t()> now_ns = base::monotonic_ns;
};

/// The port and the cache shared by all maps of a link.
class MapReads {
 public:
  /// `counts` outlive it.
  MapReads(std::shared_ptr<HostReads> reads, MapReadsOptions options,
           offload::ElsewhereCounts& counts)
      : reads_(std::move(reads)),
        options_(std::move(options)),
        cache_(options_.cache_bytes),
        counts_(counts) {}
  ~MapReads() { count(); }
  MapReads(const MapReads&) = delete;
  MapReads& operator=(const MapReads&) = delete;

  /// Null: no cache.
  [[nodiscard]] place::NodeCache* cache() { return options_.pins_roots ? &cache_ : nullptr; }
  [[nodiscard]] std::uint32_t balance() const { return options_.balance; }
  [[nodiscard]] std::uint64_t now_ns() const { return options_.now_ns(); }
  [[nodiscard]] const std::function<std::uint64_t()>& clock() const { return options_.now_ns; }

  // As in HostReads, which other kinds share.
  [[nodiscard]] place::ReadPort* port(const fabric::RemoteRegion& region) {
    return reads_->port(region);
  }
  void fail() { reads_->fail(); }
  [[nodiscard]] bool failed() const { return reads_->failed(); }

  /// Publishes what was read since the last call.
  void count();
  [[nodiscard]] offload::ElsewhereCounts& counts() { return counts_; }

 private:
  const std::shared_ptr<HostReads> reads_;
  const MapReadsOptions options_;
  place::NodeCache cache_;
  offload::ElsewhereCounts& counts_;
  Counted trips_;
  Counted bytes_;
};

/// A map and its reader.
struct MapReader {
  static constexpr std::uint32_t kLanes = 64;  // concurrent walks of one map

  MapReader(std::shared_ptr<MapReads> reads_in, place::ReadPort& port, const tree::MapView& view,
            const wire::LeaseGrant& grant, std::uint64_t asked_ns);
  ~MapReader() { count(); }
  MapReader(const MapReader&) = delete;
  MapReader& operator=(const MapReader&) = delete;

  /// Publishes its counts since the last call.
  void count();

  std::shared_ptr<MapReads> reads;
  place::OneSidedReader reader;
  /// Nothing: the map has all keys.
  std::optional<client::OneSidedOpening::Borders> borders;
  /// Versions held by this reader's lease.
  std::unordered_set<const memory::HeldVersion*> held;

 private:
  Counted descents_;
  Counted hits_;
  Counted remembered_bytes_;
  Counted balanced_;
  Counted feed_reads_;
  Counted feed_changes_;
  Counted feed_replaced_;
  Counted feed_behind_;
};

/// A version that stays readable while the lease of a map's reader protects what its first walk
/// could reach. Lost with the lease: walks at it must use the same reader.
class LeaseSnapshot final : public offload::HeldSnapshot {
 public:
  /// Requires: called within the completion of a walk of this reader, which has read `version`.
  LeaseSnapshot(std::shared_ptr<MapReader> reader, std::uint32_t map, std::uint64_t version,
                const std::string& owner);
  ~LeaseSnapshot() override;

  [[nodiscard]] const memory::HeldVersion& version() const override { return held_; }
  [[nodiscard]] std::uint32_t map() const override { return map_; }

 private:
  std::shared_ptr<MapReader> reader_;
  std::uint32_t map_;
  std::uint32_t tick_;
  memory::HeldVersion held_;
};

}  // namespace espalier::device
