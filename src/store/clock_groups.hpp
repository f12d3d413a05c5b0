// SPDX-License-Identifier: Apache-2.0
// The groups of a store's objects, each with a clock that its objects share, so that one
// transaction may write several of them (docs/design/transactions.md).
//
// Of a group those objects whose writes a crash may lose, while it keeps those of others, have a
// clock of their own: their versions come again, so they are none of the others'.
//
// Invariants
// 1. A clock's buffer is never given back: whoever has read an object's header may read the words
//    that it names for as long as it may read the region.
// 2. A clock only goes on. One that no object has any more may be that of another group: for who
//    still has an object that was dropped, that is one clock more than it asks for.
//
// Thread: any.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/error.hpp"
#include "espalier/kind.hpp"
#include "memory/shared_clock.hpp"
#include "memory/size_class.hpp"
#include "store/clock_member.hpp"
#include "wire/group_clock.hpp"

namespace espalier::memory {
class BufferPool;
}

namespace espalier::store {

/// Objects that name one name.
struct ClockGroup {
  std::string name;
  std::uint32_t members = 0;
  std::array<std::unique_ptr<memory::SharedClock>, 2> clocks{};  // of the kept, of the others
};

class ClockGroups {
 public:
  /// Groups that have names, of a store, at a time.
  static constexpr std::size_t kGroupsMax = 64;

  /// The pool outlives it.
  explicit ClockGroups(memory::BufferPool& pool) : pool_(pool) {}
  ClockGroups(const ClockGroups&) = delete;
  ClockGroups& operator=(const ClockGroups&) = delete;

  /// From now on objects that name no group are of one, too.
  void share() { shares_unnamed_ = true; }

  /// Puts an object that keeps versions into the group of this name; an empty one: into the group
  /// of those that name none, where there is that. `own`: what was promised of it alone.
  /// Errors: too_many_participants (kGroupsMax groups have objects), out_of_memory;
  /// std::bad_alloc. Requires: the caller may reclaim memory (BufferPool::allocate_or_reclaim).
  Result<ClockMember> join(std::string_view name, std::optional<Durability> own);

  /// Whether objects may share a clock.
  [[nodiscard]] bool any() const;
  /// Groups with names that have objects.
  [[nodiscard]] std::size_t size() const;
  /// Buffers of all clocks that there ever were, of kClass.
  [[nodiscard]] std::vector<std::uint64_t> buffers() const;
  static constexpr memory::SizeClass kClass = memory::table_class_of(sizeof(wire::GroupClock));

 private:
  friend class ClockMember;
  ClockGroup* find(std::string_view name);
  Result<std::unique_ptr<memory::SharedClock>> make_clock();

  memory::BufferPool& pool_;
  bool shares_unnamed_ = false;
  mutable std::mutex mutex_;                         // guards all below
  ClockGroup unnamed_{};                             // of those that name none
  std::vector<std::unique_ptr<ClockGroup>> groups_;  // kGroupsMax at most, in use or not
  std::vector<std::uint64_t> buffers_;
};

}  // namespace espalier::store
