// SPDX-License-Identifier: Apache-2.0
// The segments of a log, and the removal of those no longer needed.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "log/log_error.hpp"
#include "log/log_file.hpp"
#include "log/recovery.hpp"

namespace espalier::log {

class SegmentList {
 public:
  SegmentList(LogFolder& folder, const std::vector<SegmentRange>& segments)
      : folder_(folder), segments_(segments.begin(), segments.end()) {}

  /// Adds a segment in use; the one before is full.
  void add(SegmentRange segment);
  /// Removes the oldest segments that have no record from `sequence` on, in order, so that a crash
  /// leaves no gap. Never removes the last one. Errors: system; the rest can be removed later, once
  /// a flush of the folder has made these removals durable.
  [[nodiscard]] LogResult<void> remove_below(std::uint64_t sequence);

  [[nodiscard]] std::size_t count() const;
  /// The first sequence of the oldest one. Requires: there is one.
  [[nodiscard]] std::uint64_t first_sequence() const;
  [[nodiscard]] std::vector<SegmentRange> segments() const;

 private:
  [[nodiscard]] bool first_is_below(std::uint64_t sequence) const;

  LogFolder& folder_;
  std::mutex removing_;     // held while files are removed; mutex_ is not
  bool is_flushed_ = true;  // the last removal is durable; guarded by removing_
  mutable std::mutex mutex_;
  std::deque<SegmentRange> segments_;
};

}  // namespace espalier::log
