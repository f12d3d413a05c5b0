// SPDX-License-Identifier: Apache-2.0
// Writes that are on their way to the disk: several may be, and come back in any order, but what
// they have counts in the order in which they began.
//
// Thread: one at a time; a PendingWrite between begin() and end() is its own thread's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "log/block_builder.hpp"
#include "log/log_error.hpp"
#include "log/record_room.hpp"

namespace espalier::log {

/// Blocks that one write takes, and the records in them. Is used again for the next.
class PendingWrite {
 public:
  /// As BlockBuilder.
  PendingWrite(std::size_t block_bytes_max, std::size_t usual_bytes)
      : builder_(block_bytes_max, usual_bytes) {}
  PendingWrite(const PendingWrite&) = delete;
  PendingWrite& operator=(const PendingWrite&) = delete;
  /// Takes the usual memory of its blocks before the first of them. Throws std::bad_alloc.
  void take_memory() { builder_.take_memory(); }

  /// The sequences of its records. Requires: it has begun.
  [[nodiscard]] std::uint64_t first() const { return first_; }
  [[nodiscard]] std::uint64_t last() const { return last_; }

 private:
  friend class LogWriter;
  friend class WriteOrder;

  BlockBuilder builder_;
  std::span<const std::byte> blocks_;
  std::uint64_t offset_ = 0;  // of the segment
  std::uint64_t first_ = 0;
  std::uint64_t last_ = 0;
  RecordList records_;  // those of later writes, too, that have ended before it
  LogResult<void> result_;
};

class WriteOrder {
 public:
  /// At most so many are under way.
  explicit WriteOrder(std::size_t writes_max);

  /// It is the youngest of those that are under way. Requires: not full.
  void begin(PendingWrite& write);
  /// Its records count as written once all older writes have ended, too.
  void end(PendingWrite& write);
  /// Records of writes that have ended with all older ones, which were not taken before.
  [[nodiscard]] RecordList take_written();

  /// Whether the next write should wait until none is under way: one of the last few had several
  /// records, so commits come together, and more of them wait for this one than for two.
  [[nodiscard]] bool gathers() const { return gathering_ != 0 && !under_way_.empty(); }
  [[nodiscard]] bool full() const { return under_way_.size() == writes_max_; }
  /// None is under way, and nothing is left to take.
  [[nodiscard]] bool empty() const { return under_way_.empty() && written_.empty(); }

 private:
  static constexpr unsigned kGathering = 4;

  const std::size_t writes_max_;
  unsigned gathering_ = 0;                // for so many writes of one record still
  std::vector<PendingWrite*> under_way_;  // the oldest first
  RecordList written_;
};

}  // namespace espalier::log
