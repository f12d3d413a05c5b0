// SPDX-License-Identifier: Apache-2.0
// The ReadGuard of walks beside the memory: the epoch and the read version of one core's walks.
#pragma once

#include <cstdint>

#include "base/assert.hpp"
#include "base/epoch.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"
#include "memory/version_clock.hpp"

namespace espalier::tree {

/// The epoch and read version shared by many walks on one core (DESIGN §2.1 rules 2 and 4).
///
/// Walks begin in ticks of a bounded number of requests. All walks of a tick share one exposed
/// epoch; at most two ticks are in flight, and the core exposes the older one's epoch. The epoch is
/// exposed before the read version is loaded, and a read version is never older than the submission
/// of a request that uses it.
class EpochGuard {
 public:
  EpochGuard(base::EpochSlot& slot, const memory::VersionClock& clock)
      : slot_(&slot), clock_(&clock) {}

  /// New requests have arrived: the current read version is too old for them.
  void stale() { stale_ = true; }

  /// Begins a walk, or a group of walks that end together, which may read at version(). Returns the
  /// tick for end().
  [[nodiscard]] std::uint32_t begin() {
    if (stale_ || picked_ >= kTickRequests) refresh();
    ++picked_;
    ++ticks_[newest_].in_flight;
    return newest_;
  }
  /// Begins a read while nothing else is in flight; ends with idle().
  void begin_alone() {
    if (planted(Bug::stale_read_version) || planted(Bug::read_version_before_epoch)) {
      stale_ = true;
      return refresh();
    }
    slot_->expose(slot_->now());
    reached(Moment::between_epoch_and_version);
    version_ = clock_->released();
  }
  void end(std::uint32_t tick) {
    ESPALIER_ASSERT(ticks_[tick].in_flight != 0);
    if (--ticks_[tick].in_flight == 0 && tick != newest_ && ticks_[newest_].in_flight != 0) {
      slot_->expose(ticks_[newest_].epoch);
    }
  }
  [[nodiscard]] std::uint64_t version() const { return version_; }
  /// Nothing is in flight: exposes no epoch.
  void idle() {
    slot_->exit();
    stale_ = true;
    ticks_[0] = ticks_[1] = {};
  }
  /// Whether no walk, and no group of walks, is in flight.
  [[nodiscard]] bool nothing_in_flight() const {
    return ticks_[0].in_flight == 0 && ticks_[1].in_flight == 0;
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
  const memory::VersionClock* clock_;
  Tick ticks_[2];
  std::uint32_t newest_ = 0;
  std::uint32_t picked_ = 0;
  std::uint64_t version_ = 0;
  bool stale_ = true;
};

}  // namespace espalier::tree
