// SPDX-License-Identifier: Apache-2.0
// A read guard: exposes an epoch for the lifetime of a scope (base/epoch.hpp).
//
// Thread: that of the slot.
#pragma once

#include "base/epoch.hpp"

namespace espalier::base {

class ExposedEpoch {
 public:
  /// Requires: the slot is idle, and outlives this.
  explicit ExposedEpoch(EpochSlot& slot) : slot_(slot) { slot_.enter(); }
  ~ExposedEpoch() { slot_.exit(); }
  ExposedEpoch(const ExposedEpoch&) = delete;
  ExposedEpoch& operator=(const ExposedEpoch&) = delete;

 private:
  EpochSlot& slot_;
};

}  // namespace espalier::base
