// SPDX-License-Identifier: Apache-2.0
#include "base/lease_table.hpp"

#include <algorithm>

namespace espalier::base {

LeaseTable::Granted LeaseTable::grant(std::uint64_t owner, std::uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  // Read under the mutex: a thread that computes the oldest epoch either sees this lease, or has
  // read a global epoch that is no newer than the one here (epoch.hpp, case 2).
  const Holder lease{next_++, owner, epochs_.current(), now_ns};
  leases_.emplace(lease.id, lease);
  return {lease.id, lease.epoch};
}

Result<std::uint64_t> LeaseTable::renew(LeaseId id, std::uint64_t oldest, std::uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  const auto found = leases_.find(id);
  if (found == leases_.end()) return fail(Code::not_found);
  Holder& lease = found->second;
  const std::uint64_t now = epochs_.current();
  if (oldest > now) return fail(Code::invalid_argument);
  lease.epoch = std::max(lease.epoch, oldest);
  lease.renewed_ns = std::max(lease.renewed_ns, now_ns);
  return now;
}

void LeaseTable::end(LeaseId id) {
  const std::lock_guard lock(mutex_);
  leases_.erase(id);
}

std::uint64_t LeaseTable::oldest() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t oldest = ~std::uint64_t{0};
  for (const auto& [id, lease] : leases_) oldest = std::min(oldest, lease.epoch);
  return oldest;
}

std::vector<LeaseTable::Holder> LeaseTable::overdue(std::uint64_t renewed_before_ns,
                                                    std::uint64_t epoch) const {
  const std::lock_guard lock(mutex_);
  std::vector<Holder> found;
  for (const auto& [id, lease] : leases_) {
    if (lease.renewed_ns < renewed_before_ns || lease.epoch < epoch) found.push_back(lease);
  }
  std::ranges::sort(found, {}, &Holder::epoch);
  return found;
}

void LeaseTable::ask_for_sweep(std::uint64_t end_below) {
  std::uint64_t before = end_below_.load(std::memory_order_relaxed);
  while (before < end_below &&
         !end_below_.compare_exchange_weak(before, end_below, std::memory_order_relaxed)) {
  }
  sweeps_asked_.fetch_add(1, std::memory_order_release);
}

std::size_t LeaseTable::size() const {
  const std::lock_guard lock(mutex_);
  return leases_.size();
}

}  // namespace espalier::base
