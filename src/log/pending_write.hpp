// SPDX-License-Identifier: Apache-2.0
// Writes under way to the disk: several may be, and complete in any order, but their records count
// as written in the order in which the writes began.
//
// Thread: one at a time; between begin() and end() a PendingWrite belongs to its own thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "log/block_builder.hpp"
#include "log/log_error.hpp"
#include "log/record_room.hpp"

namespace espalier::log {

/// Blocks of one write, and the records in them. Reused for the next write.
class PendingWrite {
 public:
  /// As BlockBuilder.
  PendingWrite(std::size_t block_bytes_max, std::size_t usual_bytes)
      : builder_(block_bytes_max, usual_bytes) {}
  PendingWrite(const PendingWrite&) = delete;
  PendingWrite& operator=(const PendingWrite&) = delete;
  /// Allocates the usual memory of its blocks before the first one. Throws std::bad_alloc.
  void take_memory() { builder_.take_memory(); }

  /// The sequences of its records. Requires: it has begun.
  [[nodiscard]] std::uint64_t first() const { return first_; }
  [[nodiscard]] std::uint64_t last() const { return last_; }

 private:
  friend class LogWriter;
  friend class WriteOrder;

  BlockBuilder builder_;
  std::span<const std::byte> blocks_;
  std::uint64_t offset_ = 0;  // in the segment
  std::uint64_t first_ = 0;
  std::uint64_t last_ = 0;
  RecordList records_;  // also those of later writes that ended earlier
  LogResult<void> result_;
};

class WriteOrder {
 public:
  /// At most so many writes are under way.
  explicit WriteOrder(std::size_t writes_max);

  /// Adds the youngest write under way. Requires: not full.
  void begin(PendingWrite& write);
  /// Ends a write. Its records count as written once all older writes have ended, too.
  void end(PendingWrite& write);
  /// Records of writes that have ended together with all older ones, and were not taken before.
  [[nodiscard]] RecordList take_written();

  /// Whether the next write should wait until none is under way: one of the last few had several
  /// records, so commits arrive together, and one larger group commit serves more of them.
  [[nodiscard]] bool gathers() const { return gathering_ != 0 && !under_way_.empty(); }
  [[nodiscard]] bool full() const { return under_way_.size() == writes_max_; }
  /// Whether no write is under way, and nothing is left to take.
  [[nodiscard]] bool empty() const { return under_way_.empty() && written_.empty(); }

 private:
  static constexpr unsigned kGathering = 4;

  const std::size_t writes_max_;
  unsigned gathering_ = 0;                // remaining writes of one record before it stops
  std::vector<PendingWrite*> under_way_;  // the oldest first
  RecordList written_;
};

}  // namespace espalier::log
