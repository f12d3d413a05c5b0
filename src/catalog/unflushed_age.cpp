// SPDX-License-Identifier: Apache-2.0
#include "catalog/unflushed_age.hpp"

#include <algorithm>
#include <chrono>

#include "base/assert.hpp"
#include "base/coarse_clock.hpp"
#include "base/durable_mark.hpp"

namespace espalier::catalog {

// The coarse clock may lag by a tick.
UnflushedAge::UnflushedAge(RedoSink& sink, std::uint64_t limit_ns)
    : UnflushedAge(sink, limit_ns - std::min(limit_ns / 2, base::coarse_tick_ns()),
                   base::coarse_ns) {}

UnflushedAge::UnflushedAge(RedoSink& sink, std::uint64_t limit_ns, Clock now_ns)
    : sink_(sink), limit_ns_(limit_ns), now_ns_(now_ns), looked_ns_(now_ns()) {
  ESPALIER_ASSERT(limit_ns >= kLooks);
}

// Checks against the limit less a sixteenth: the age may grow by that until the next sample.
bool UnflushedAge::look(std::uint64_t now) noexcept {
  const std::lock_guard lock(mutex_);
  now = std::max(now, looked_ns_);  // another thread may have sampled meanwhile
  const std::uint64_t every = limit_ns_ / kLooks;
  const std::uint64_t durable = sink_.mark().durable();
  const auto* const end = samples_.begin() + count_;
  const auto* const first = std::ranges::find_if(
      samples_.begin(), end, [&](const Sample& each) { return each.sequence > durable; });
  std::ranges::copy(first, end, samples_.begin());
  count_ = static_cast<std::size_t>(end - first);
  add_sample(durable);
  looked_ns_ = now;
  const bool over =
      count_ != 0 && now - samples_.front().since_ns >= limit_ns_ - every && !sink_.mark().failed();
  look_at_ns_.store(over ? 0 : now + every, std::memory_order_relaxed);
  return over;
}

// With all samples in use, the last one takes the new records over its own time: by then the oldest
// is at the limit.
void UnflushedAge::add_sample(std::uint64_t durable) noexcept {
  const std::uint64_t known = count_ != 0 ? samples_[count_ - 1].sequence : durable;
  const std::uint64_t handed_over = sink_.handed_over();
  if (handed_over <= std::max(known, durable)) return;
  if (count_ == samples_.size()) {
    samples_.back().sequence = handed_over;
    return;
  }
  samples_[count_++] = {handed_over, looked_ns_};
}

void wait_until_younger(const Object& object) {
  constexpr std::chrono::milliseconds kAgain{10};
  while (must_wait_for_disk(object)) {
    base::DurableMark& mark = object.redo()->mark();
    static_cast<void>(mark.await(mark.released() + 1, kAgain));
  }
}

}  // namespace espalier::catalog
