// SPDX-License-Identifier: Apache-2.0
#include "store/clock_groups.hpp"

#include <algorithm>
#include <new>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"
#include "base/places.hpp"
#include "memory/buffer_pool.hpp"

namespace espalier::store {

void ClockMember::leave() noexcept {
  if (group_ == nullptr) return;
  const std::lock_guard lock(groups_->mutex_);
  ESPALIER_ASSERT(group_->members != 0);
  --group_->members;
  group_ = nullptr;
}

Result<ClockMember> ClockGroups::join(std::string_view name, std::optional<Durability> own) {
  if (name.empty() && !shares_unnamed_) return ClockMember();
  const std::lock_guard lock(mutex_);
  ClockGroup* const group = find(name);
  if (group == nullptr) return base::full(base::Places::clock_groups, kGroupsMax);
  std::unique_ptr<memory::SharedClock>& clock = group->clocks[own == Durability::none ? 1 : 0];
  if (clock == nullptr) {
    auto made = make_clock();
    if (!made) return std::unexpected(made.error());
    clock = std::move(*made);
  }
  if (group->members == 0 && !name.empty()) group->name = name;
  ++group->members;
  return ClockMember(*this, *group, *clock);
}

// The one of this name, else one that no object has, else one more. The lock is held.
ClockGroup* ClockGroups::find(std::string_view name) {
  if (name.empty()) return &unnamed_;
  ClockGroup* left = nullptr;
  for (const auto& group : groups_) {
    if (group->members == 0) {
      if (left == nullptr) left = group.get();
    } else if (group->name == name) {
      return group.get();
    }
  }
  if (left != nullptr || groups_.size() == kGroupsMax) return left;
  return groups_.emplace_back(std::make_unique<ClockGroup>()).get();
}

// No reclaiming comes back here: what it frees are no objects.
Result<std::unique_ptr<memory::SharedClock>> ClockGroups::make_clock() {
  buffers_.reserve(buffers_.size() + 1);
  const auto buffer = pool_.allocate_or_reclaim(kClass);
  if (!buffer) return std::unexpected(buffer.error());
  buffers_.push_back(*buffer);
  std::byte* const at = pool_.at(*buffer);
  wire::GroupClock fields{};
  fields.generation = base::load_shared<std::uint32_t>(at + offsetof(wire::GroupClock, generation));
  fields.created = wire::kNoNode;
  base::copy_shared(at, reinterpret_cast<const std::byte*>(&fields), sizeof fields);
  base::store_shared<std::uint64_t>(at + offsetof(wire::GroupClock, superseded), wire::kLive,
                                    std::memory_order_release);
  const std::uint64_t read = offsetof(wire::GroupClock, read_version);
  try {
    return std::make_unique<memory::SharedClock>(
        memory::VersionWords{.read = at + read, .write = at + read + wire::kWriteVersionBehind},
        *buffer + read);
  } catch (const std::bad_alloc&) {  // no header has named it
    buffers_.pop_back();
    pool_.release(*buffer, kClass);
    throw;
  }
}

bool ClockGroups::any() const {
  const std::lock_guard lock(mutex_);
  return shares_unnamed_ || !groups_.empty();
}

std::size_t ClockGroups::size() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::ranges::count_if(
      groups_, [](const std::unique_ptr<ClockGroup>& group) { return group->members != 0; }));
}

std::vector<std::uint64_t> ClockGroups::buffers() const {
  const std::lock_guard lock(mutex_);
  return buffers_;
}

}  // namespace espalier::store
