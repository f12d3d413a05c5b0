// SPDX-License-Identifier: Apache-2.0
// Groups of a store's objects. The objects of a group share a clock, so one transaction may write
// several of them (docs/design/transactions.md).
//
// Objects of durability `none` have a clock of their own in their group: a crash loses their writes
// but keeps those of the others, and then their versions are issued a second time.
//
// Invariants
// 1. A clock's buffer is never freed: a reader that has read an object's header may read the words
//    that the header names for as long as it may read the region.
// 2. A clock only advances. The clock of a group without objects passes to the next new group. A
//    holder of a dropped object may still advance it; that only skips versions.
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

/// The objects that were made with one group name.
struct ClockGroup {
  std::string name;
  std::uint32_t members = 0;
  std::array<std::unique_ptr<memory::SharedClock>, 2> clocks{};  // durable; `none`
};

class ClockGroups {
 public:
  /// Named groups of a store at any one time.
  static constexpr std::size_t kGroupsMax = 64;

  /// The pool must outlive it.
  explicit ClockGroups(memory::BufferPool& pool) : pool_(pool) {}
  ClockGroups(const ClockGroups&) = delete;
  ClockGroups& operator=(const ClockGroups&) = delete;

  /// From now on objects that name no group share a group, too.
  void share() { shares_unnamed_ = true; }

  /// Adds an object that keeps versions to the group `name`. An empty name means the unnamed group
  /// after share(), and no group before. `own`: the durability of this object alone, if it has one.
  /// Errors: too_many_participants (kGroupsMax groups have objects), out_of_memory; std::bad_alloc.
  /// Requires: the caller may reclaim memory (BufferPool::allocate_or_reclaim).
  Result<ClockMember> join(std::string_view name, std::optional<Durability> own);

  /// Whether objects may share a clock.
  [[nodiscard]] bool any() const;
  /// Named groups that have objects.
  [[nodiscard]] std::size_t size() const;
  /// The buffers of all clocks made so far; each has the size class kClass.
  [[nodiscard]] std::vector<std::uint64_t> buffers() const;
  static constexpr memory::SizeClass kClass = memory::table_class_of(sizeof(wire::GroupClock));

 private:
  friend class ClockMember;
  ClockGroup* find(std::string_view name);
  Result<std::unique_ptr<memory::SharedClock>> make_clock();

  memory::BufferPool& pool_;
  bool shares_unnamed_ = false;
  mutable std::mutex mutex_;                         // guards all below
  ClockGroup unnamed_{};                             // of objects that name no group
  std::vector<std::unique_ptr<ClockGroup>> groups_;  // kGroupsMax at most, in use or not
  std::vector<std::uint64_t> buffers_;
};

}  // namespace espalier::store
