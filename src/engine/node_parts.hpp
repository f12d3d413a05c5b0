// SPDX-License-Identifier: Apache-2.0
// What schedulers and nodes keep for kinds of objects.
#pragma once

#include "base/typed_slots.hpp"

namespace espalier::offload {

using base::TypedSlots;

struct Services;

/// What a scheduler keeps for a kind. Thread: the scheduler's.
class SchedulerPart {
 public:
  virtual ~SchedulerPart() = default;
  /// Now and then, between turns. Errors: std::bad_alloc.
  virtual void maintain(Services&) {}
};

/// What a node keeps for a kind. Thread: any.
class NodePart {
 public:
  virtual ~NodePart() = default;
};

}  // namespace espalier::offload
