// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/offload/held_snapshots.hpp"

#include <utility>

#include "base/places.hpp"
#include "engine/connection.hpp"

namespace espalier::offload {

HeldSnapshots& HeldSnapshots::of(Connection& connection) {
  return connection.parts.of<HeldSnapshots>();
}

HeldSnapshots::~HeldSnapshots() {
  for (const auto& [number, kept] : snapshots_) uncount(kept);
}

Result<std::uint64_t> HeldSnapshots::hold(std::shared_ptr<HeldSnapshot> snapshot,
                                          const PrincipalRef& whose, bool on_behalf) {
  if (!on_behalf && own_ >= kMost) {
    return base::full(base::Places::connection_snapshots, kMost);
  }
  if (whose) {
    auto& held = whose->parts.of<SnapshotShare>().held;
    if (held.fetch_add(1, std::memory_order_relaxed) >= kPrincipalMost) {
      held.fetch_sub(1, std::memory_order_relaxed);
      return base::full(base::Places::principal_snapshots, kPrincipalMost);
    }
  }
  Entry kept{std::move(snapshot), whose, on_behalf};
  if (!on_behalf) ++own_;
  try {
    snapshots_.emplace(next_, kept);
  } catch (...) {
    uncount(kept);
    throw;
  }
  return next_++;
}

void HeldSnapshots::uncount(const Entry& kept) {
  if (!kept.on_behalf) --own_;
  if (!kept.account) return;
  kept.account->parts.of<SnapshotShare>().held.fetch_sub(1, std::memory_order_relaxed);
}

bool HeldSnapshots::drop(std::uint64_t number) {
  const auto found = snapshots_.find(number);
  if (found == snapshots_.end()) return false;
  uncount(found->second);
  snapshots_.erase(found);
  return true;
}

std::shared_ptr<HeldSnapshot> HeldSnapshots::find(std::uint64_t number) const {
  const auto found = snapshots_.find(number);
  return found == snapshots_.end() ? nullptr : found->second.snapshot;
}

}  // namespace espalier::offload
