// SPDX-License-Identifier: Apache-2.0
// Reads records of a log that is being written, out of its segments: for another node that lacks
// them and is to have them too (docs/design/chains.md).
//
// It stays where it was, so that one call goes on where the one before ended. What is removed
// meanwhile is no error but missing.
//
// Thread: one at a time; those who write the log are others.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "log/block_reader.hpp"
#include "log/log_error.hpp"
#include "log/log_file.hpp"
#include "log/segment_list.hpp"
#include "log/unit_buffer.hpp"

namespace espalier::log {

class LogReader {
 public:
  /// Of the log of this node's number in the folder, which has these segments. Both outlive it.
  LogReader(LogFolder& folder, std::uint64_t node, const SegmentList& segments)
      : folder_(folder), node_(node), segments_(segments) {}

  /// Takes a record, in memory that is valid for the call; false: it did not, and has enough.
  using TakeRecord = std::function<bool(std::uint64_t sequence, std::span<const std::byte> record)>;

  /// Calls `take` for the records from `first` to `last`, in order, until that is false, or one is
  /// not there (any more). Returns the sequence of the last one that was taken; first - 1: none.
  /// Errors: system, no_memory; header, hole (something else lies where records must).
  /// Requires: those up to `last` were written, or are below what the log has.
  /// Cost: a read of each block, and of the heads of those before in its segment where a call does
  /// not go on from the last one.
  LogResult<std::uint64_t> read(std::uint64_t first, std::uint64_t last, const TakeRecord& take);

 private:
  LogResult<std::uint64_t> read_blocks(std::uint64_t first, std::uint64_t last,
                                       const TakeRecord& take);
  LogResult<bool> go_to(std::uint64_t sequence);
  LogResult<bool> seek(std::uint64_t sequence);
  LogResult<bool> read_head();
  LogResult<Block> read_whole_block();
  [[nodiscard]] std::unexpected<LogError> fault(LogFault fault, Error error) const;

  LogFolder& folder_;
  const std::uint64_t node_;
  const SegmentList& segments_;
  std::unique_ptr<LogFile> file_;  // null: it is nowhere
  std::string name_;
  SegmentHeader segment_{};
  std::uint64_t offset_ = 0;  // of the block at which it is
  std::uint64_t next_ = 0;    // the sequence of its first record
  std::uint64_t limit_ = 0;   // records from here on are those of later segments
  BlockHeader block_{};       // its head, once that was read
  UnitBuffer buffer_;
};

}  // namespace espalier::log
