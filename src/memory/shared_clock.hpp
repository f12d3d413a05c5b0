// SPDX-License-Identifier: Apache-2.0
// One clock for several objects: a write of several objects has one version, which is released for
// all of them atomically. So a reader that has seen one of its effects in one object sees all of
// them.
//
// Its words lie in this process alone. Remote readers look for the read version in the header of
// each object, so objects that share a clock can be read within the process only.
//
// Thread: any, but for wait_for_records().
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/version_clock.hpp"

namespace espalier::memory {

class SharedClock {
 public:
  SharedClock() {
    clock_.attach({.read = reinterpret_cast<std::byte*>(&read_),
                   .write = reinterpret_cast<std::byte*>(&write_)},
                  true);
  }
  SharedClock(const SharedClock&) = delete;
  SharedClock& operator=(const SharedClock&) = delete;

  [[nodiscard]] VersionClock& clock() { return clock_; }

  /// As VersionClock::wait_for_records(), for the first object that calls it; later calls pass the
  /// same mark and change nothing. Errors: std::bad_alloc. Requires: as there, the first time;
  /// calls do not run concurrently.
  void wait_for_records(base::DurableMark* mark) {
    if (mark == mark_) return;
    clock_.wait_for_records(mark);
    mark_ = mark;
  }

 private:
  alignas(64) std::uint64_t read_ = 0;
  alignas(64) std::uint64_t write_ = 0;
  VersionClock clock_;
  base::DurableMark* mark_ = nullptr;
};

}  // namespace espalier::memory
