// SPDX-License-Identifier: Apache-2.0
// State that schedulers and nodes store for kinds of objects.
#pragma once

#include "base/typed_slots.hpp"

namespace espalier::offload {

using base::TypedSlots;

struct Services;

/// A scheduler's state for a kind. Thread: the scheduler's.
class SchedulerPart {
 public:
  virtual ~SchedulerPart() = default;
  /// Periodic maintenance, between turns. Errors: std::bad_alloc.
  virtual void maintain(Services&) {}
};

/// A node's state for a kind. Thread: any.
class NodePart {
 public:
  virtual ~NodePart() = default;
};

}  // namespace espalier::offload
