// SPDX-License-Identifier: Apache-2.0
// An object's place in a group of objects that share a clock (store/clock_groups.hpp).
//
// Thread: any, but leave() once.
#pragma once

#include <utility>

namespace espalier::memory {
class SharedClock;
}

namespace espalier::store {

class ClockGroups;
struct ClockGroup;

/// One that is none: the object has a clock of its own.
class ClockMember {
 public:
  ClockMember() = default;
  ClockMember(ClockMember&& other) noexcept
      : groups_(other.groups_),
        group_(std::exchange(other.group_, nullptr)),
        clock_(std::exchange(other.clock_, nullptr)) {}
  ClockMember& operator=(ClockMember&&) = delete;
  ~ClockMember() { leave(); }

  /// Null: it is in no group.
  [[nodiscard]] memory::SharedClock* clock() const { return clock_; }
  /// The object is no more of the group. Its clock stays, for who still has the object.
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
