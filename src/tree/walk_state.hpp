// SPDX-License-Identifier: Apache-2.0
// One lane of an engine: the walk it is on, and the epoch and version under which it reads.
#pragma once

#include <cstdint>
#include <vector>

#include "base/task.hpp"
#include "tree/leaf_scan.hpp"
#include "tree/leaf_write.hpp"
#include "tree/map_core.hpp"
#include "tree/planted.hpp"

namespace espalier::tree {

/// A request on its way to a lane.
struct WalkRequest {
  const Request* request = nullptr;
  Handler* handler = nullptr;
  const HeldVersion* held = nullptr;  // read as of this version; null: the newest released one
  wire::Ref hint{};                   // enter here first
  WriteCondition condition{};         // of a write
};

/// What a walk is after.
enum class Goal : std::uint8_t { point, write, forward, backward };

/// Which items a scan wants besides its bounds.
struct ScanRange {
  bool has_low = false;
  bool has_high = false;
};

/// What only scans need; apart, so that the lanes of point operations stay small in the cache.
struct ScanState {
  SearchKey low;   // inclusive
  SearchKey high;  // exclusive
  ScanRange range;
  std::uint64_t remaining = 0;
  LeafScan leaf;
  Item items[32];
};

struct Lane {
  Goal goal = Goal::point;
  bool plain = false;          // an ascending read: version and heads of the fences decide at once
  bool finding_floor = false;  // first leg of floor and scan_floor
  bool stored_value = false;
  std::uint32_t tick = 0;
  std::uint64_t read_version = 0;
  wire::Ref hint{};
  wire::Ref other_predecessor{};  // if the second of two turns out not to cover the key
  WalkRequest task;
  Completion answer;
  SearchKey key;           // what the walk looks for now; of scans, the cursor
  wire::ValueRef value{};  // of a write with an out-of-line value
  std::uint32_t attempts = 0;
  wire::Lid lid = 0;  // not in place: what to look up where there is no reference; 0: the root
  ScanState scan;
  base::WalkTask walk;
};

/// A get on its way through the stages of a group (point_group.hpp).
struct alignas(64) PointSlot {
  SearchKey key;
  const Request* request = nullptr;
  std::uint64_t entry = 0;  // of the page table: the leaf's
  wire::Ref ref{};
  LeafProbe probe;
  bool plain = true;  // nothing unusual was met; else a lane takes over
};

/// When reads began, for many walks on one core (DESIGN §2.1 rules 2 and 4).
///
/// Walks are picked up in ticks of some requests. All walks of a tick share one exposed epoch; at
/// most two ticks are in flight, and the older one's epoch is what the core exposes. The epoch is
/// exposed before the read version is loaded, and a read version is never older than the submission
/// of the request that uses it.
class Pins {
 public:
  Pins(base::EpochSlot& slot, const VersionClock& clock) : slot_(&slot), clock_(&clock) {}

  /// New requests have arrived: what was read before them is too old for them.
  void stale() { stale_ = true; }

  void pick_up(Lane& lane) {
    lane.tick = begin();
    lane.read_version = lane.task.held != nullptr ? lane.task.held->version : version_;
  }
  void finish(const Lane& lane) { end(lane.tick); }

  /// The same for a group of reads that begins and ends together; its version is version().
  [[nodiscard]] std::uint32_t begin() {
    if (stale_ || picked_ >= kTickRequests) refresh();
    ++picked_;
    ++ticks_[newest_].in_flight;
    return newest_;
  }
  void end(std::uint32_t tick) {
    if (--ticks_[tick].in_flight == 0 && tick != newest_ && ticks_[newest_].in_flight != 0) {
      slot_->expose(ticks_[newest_].epoch);
    }
  }
  [[nodiscard]] std::uint64_t version() const { return version_; }
  /// Nothing is in flight any more.
  void idle() {
    slot_->exit();
    stale_ = true;
    ticks_[0] = ticks_[1] = {};
  }

 private:
  static constexpr std::uint32_t kTickRequests = 16;
  struct Tick {
    std::uint64_t epoch = 0;
    std::uint32_t in_flight = 0;
  };

  void refresh() {
    const bool keep = planted(Bug::stale_read_version) && version_ != 0;
    if (planted(Bug::read_version_before_epoch)) {
      version_ = clock_->released();
      reached(Moment::between_epoch_and_version);
    }
    Tick& older = ticks_[1 - newest_];
    if (older.in_flight == 0) {
      const bool alone = ticks_[newest_].in_flight == 0;
      newest_ = 1 - newest_;
      ticks_[newest_].epoch = slot_->now();
      if (alone) slot_->expose(ticks_[newest_].epoch);
    }
    if (!planted(Bug::read_version_before_epoch) && !keep) {
      reached(Moment::between_epoch_and_version);
      version_ = clock_->released();
    }
    picked_ = 0;
    stale_ = false;
  }

  base::EpochSlot* slot_;
  const VersionClock* clock_;
  Tick ticks_[2];
  std::uint32_t newest_ = 0;
  std::uint32_t picked_ = 0;
  std::uint64_t version_ = 0;
  bool stale_ = true;
};

}  // namespace espalier::tree
