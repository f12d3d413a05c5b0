// SPDX-License-Identifier: Apache-2.0
#include "log/segment_list.hpp"

#include <algorithm>

#include "log/format.hpp"
#include "log/planted_log_bugs.hpp"

namespace espalier::log {

void SegmentList::add(SegmentRange segment) {
  const std::scoped_lock lock(mutex_);
  segments_.push_back(segment);
}

bool SegmentList::first_is_below(std::uint64_t sequence) const {
  if (segments_.size() < 2) return false;
  if (planted(Bug::removed_early)) return segments_.front().first_sequence < sequence;
  // Where a later one begins, the records of the first end.
  return std::any_of(segments_.begin() + 1, segments_.end(),
                     [&](const SegmentRange& later) { return later.first_sequence <= sequence; });
}

LogResult<void> SegmentList::remove_below(std::uint64_t sequence) {
  const std::scoped_lock removing(removing_);
  while (true) {
    if (!is_flushed_) {
      const auto flushed = folder_.sync();
      if (!flushed) return log_fail(flushed.error(), LogFault::system, ".", 0, sequence);
      is_flushed_ = true;
    }
    std::string name;
    {
      const std::scoped_lock lock(mutex_);
      if (!first_is_below(sequence)) return {};
      name = segment_name(segments_.front().number);
    }
    const auto removed = folder_.remove(name);
    if (!removed) return log_fail(removed.error(), LogFault::system, name, 0, sequence);
    is_flushed_ = false;
    const std::scoped_lock lock(mutex_);
    segments_.pop_front();
  }
}

std::size_t SegmentList::count() const {
  const std::scoped_lock lock(mutex_);
  return segments_.size();
}

std::uint64_t SegmentList::first_sequence() const {
  const std::scoped_lock lock(mutex_);
  return segments_.front().first_sequence;
}

std::vector<SegmentRange> SegmentList::segments() const {
  const std::scoped_lock lock(mutex_);
  return {segments_.begin(), segments_.end()};
}

}  // namespace espalier::log
