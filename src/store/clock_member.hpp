// SPDX-License-Identifier: Apache-2.0
// An object's membership in a group of objects that share a clock (store/clock_groups.hpp).
//
// Thread: any; leave() is called by one thread.
#pragma once

#include <utility>

namespace espalier::memory {
class SharedClock;
}

namespace espalier::store {

class ClockGroups;
struct ClockGroup;

/// A default one is no membership: the object has a clock of its own.
class ClockMember {
 public:
  ClockMember() = default;
  ClockMember(ClockMember&& other) noexcept
      : groups_(other.groups_),
        group_(std::exchange(other.group_, nullptr)),
        clock_(std::exchange(other.clock_, nullptr)) {}
  ClockMember& operator=(ClockMember&&) = delete;
  ~ClockMember() { leave(); }

  /// Null: no membership.
  [[nodiscard]] memory::SharedClock* clock() const { return clock_; }
  /// Ends the membership. The clock stays valid for holders of the object.
  void leave() noexcept;

 private:
  friend class ClockGroups;
  ClockMember(ClockGroups& groups, ClockGroup& group, memory::SharedClock& clock)
      : groups_(&groups), group_(&group), clock_(&clock) {}

  ClockGroups* groups_ = nullptr;
  ClockGroup* group_ = nullptr;  // null: it has left
  memory::SharedClock* clock_ = nullptr;
};

}  // namespace espalier::store
