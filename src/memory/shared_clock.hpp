// SPDX-License-Identifier: Apache-2.0
// One clock for several objects: a write of several objects has one version, which is released for
// all of them atomically. So a reader that has seen one of its effects in one object sees all of
// them.
//
// Its words lie in the region, in a buffer that is no object's; the header of each object says
// where, for readers elsewhere.
//
// Thread: any, but for wait_for_records().
#pragma once

#include <cstdint>

#include "memory/version_clock.hpp"

namespace espalier::memory {

class SharedClock {
 public:
  /// `place`: of the word of its read version, from the region's base.
  SharedClock(const VersionWords& words, std::uint64_t place) : place_(place) {
    clock_.attach(words, true);
  }
  SharedClock(const SharedClock&) = delete;
  SharedClock& operator=(const SharedClock&) = delete;

  [[nodiscard]] VersionClock& clock() { return clock_; }
  [[nodiscard]] std::uint64_t place() const { return place_; }

  /// As VersionClock::wait_for_records(), for the first object that calls it; later calls pass the
  /// same mark and change nothing. Errors: std::bad_alloc. Requires: as there, the first time;
  /// calls do not run concurrently.
  void wait_for_records(base::DurableMark* mark) {
    if (mark == mark_) return;
    clock_.wait_for_records(mark);
    mark_ = mark;
  }

 private:
  const std::uint64_t place_;
  VersionClock clock_;
  base::DurableMark* mark_ = nullptr;
};

}  // namespace espalier::memory
