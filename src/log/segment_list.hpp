// SPDX-License-Identifier: Apache-2.0
// The segments that a log has, and which of them are not needed any more.
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

  /// One more is in use; the one before is full.
  void add(SegmentRange segment);
  /// Removes the oldest ones that have no record from `sequence` on, one after the other, so that a
  /// crash leaves no gap. Never the last. Errors: system; what was not removed can be later, once a
  /// flush of the folder has made durable what was.
  [[nodiscard]] LogResult<void> remove_below(std::uint64_t sequence);

  [[nodiscard]] std::size_t count() const;
  /// The first sequence of the oldest one. Requires: there is one.
  [[nodiscard]] std::uint64_t first_sequence() const;
  [[nodiscard]] std::vector<SegmentRange> segments() const;

 private:
  [[nodiscard]] bool first_is_below(std::uint64_t sequence) const;

  LogFolder& folder_;
  std::mutex removing_;     // is held while files are removed; mutex_ is not
  bool is_flushed_ = true;  // the last removal is durable; with removing_ held
  mutable std::mutex mutex_;
  std::deque<SegmentRange> segments_;
};

}  // namespace espalier::log
