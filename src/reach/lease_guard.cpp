// SPDX-License-Identifier: Apache-2.0
#include "reach/lease_guard.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "wire/one_sided.hpp"

namespace espalier::place {

std::uint32_t LeaseGuard::begin() {
  if (ticks_.empty() || ticks_.back().epoch != epoch_) ticks_.push_back({epoch_, 0});
  ++ticks_.back().walks;
  ++in_flight_;
  return first_tick_ + static_cast<std::uint32_t>(ticks_.size()) - 1;
}

void LeaseGuard::end(std::uint32_t tick) {
  Tick& of = ticks_[tick - first_tick_];
  ESPALIER_ASSERT(of.walks != 0);
  --of.walks;
  --in_flight_;
  while (!ticks_.empty() && ticks_.front().walks == 0) {
    ticks_.pop_front();
    ++first_tick_;
  }
}

void LeaseGuard::hold(std::uint32_t tick) {
  Tick& of = ticks_[tick - first_tick_];
  ESPALIER_ASSERT(of.walks != 0);
  ++of.walks;
  ++in_flight_;
}

std::optional<LeaseGuard::Asked> LeaseGuard::due(std::uint64_t now_ns) {
  if (asking_ || ended_ || in_flight_ == 0) return std::nullopt;
  const bool wanted = id_ == 0 || !waiting_.empty() || now_ns - as_of_ns_ >= terms_.renew_every_ns;
  if (!wanted) return std::nullopt;
  asking_ = true;
  asked_ns_ = now_ns;
  const std::uint64_t oldest = ticks_.empty() ? epoch_ : std::min(epoch_, ticks_.front().epoch);
  return Asked{id_, oldest};
}

std::optional<LeaseGuard::Asked> LeaseGuard::idle_due(std::uint64_t now_ns) {
  if (asking_ || ended_ || id_ == 0 || in_flight_ != 0) return std::nullopt;
  if (now_ns - as_of_ns_ < terms_.lost_after_ns / 4) return std::nullopt;
  asking_ = true;
  asked_ns_ = now_ns;
  return Asked{id_, epoch_};
}

// Waiting walks continue if the answer came in time. If not, a renewal is requested immediately; if
// that never helps, the host is too far away to be trusted. Without waiting walks a late answer
// only shows that the owner polled late.
void LeaseGuard::answered(std::uint64_t asked_ns, std::uint64_t now_ns) {
  asking_ = false;
  as_of_ns_ = asked_ns;
  const bool late = !believed(now_ns);
  late_ = late && !waiting_.empty() ? late_ + 1 : 0;
  if (late_ >= kLateMax) return end_all();
  if (!late) wake(true);
}

void LeaseGuard::granted(base::LeaseId id, std::uint64_t epoch, std::uint64_t asked_ns,
                         std::uint64_t now_ns) {
  id_ = id;
  epoch_ = epoch;
  // Walks that began without a lease, or under one that was lost, read from here on.
  for (Tick& tick : ticks_) tick.epoch = epoch;
  answered(asked_ns, now_ns);
}

void LeaseGuard::renewed(std::uint64_t epoch, std::uint64_t now_ns) {
  epoch_ = std::max(epoch_, epoch);
  answered(asked_ns_, now_ns);
}

void LeaseGuard::lost() {
  asking_ = false;
  id_ = 0;
  ++term_;
  wake(false);
}

void LeaseGuard::end_all() {
  asking_ = false;
  ended_ = true;
  id_ = 0;
  ++term_;
  wake(true);
}

std::optional<LeaseGuard::Asked> LeaseGuard::give_back() {
  ESPALIER_ASSERT(in_flight_ == 0);
  const base::LeaseId id = id_;
  end_all();
  if (id == 0) return std::nullopt;
  return Asked{id, wire::kLeaseGivenBack};
}

void LeaseGuard::wake(bool all) {
  std::erase_if(waiting_, [all](const Waiting& waiting) {
    if (!all && !waiting.or_lost) return false;
    waiting.ready->push(waiting.walk);
    return true;
  });
}

std::uint64_t LeaseGuard::next_due_ns() const {
  if (asking_ || ended_ || in_flight_ == 0) return ~std::uint64_t{0};
  if (id_ == 0 || !waiting_.empty()) return 0;
  return as_of_ns_ + terms_.renew_every_ns;
}

}  // namespace espalier::place
