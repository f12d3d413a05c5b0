// SPDX-License-Identifier: Apache-2.0
// Reads records of a log that is being written, out of its segments, to send them to another node
// (docs/design/chains.md).
//
// It keeps its position, so that one call continues where the previous one ended. Segments removed
// meanwhile are no error: their records are missing.
//
// Thread: one at a time; other threads write the log.
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
  /// Reads the log of this node's number in the folder, which has these segments. Both outlive it.
  LogReader(LogFolder& folder, std::uint64_t node, const SegmentList& segments)
      : folder_(folder), node_(node), segments_(segments) {}

  /// Takes a record, in memory that is valid for the call. Returns false if it did not take it and
  /// wants no more.
  using TakeRecord = std::function<bool(std::uint64_t sequence, std::span<const std::byte> record)>;

  /// Calls `take` for the records from `first` to `last`, in order, until it returns false, or a
  /// record is not (or no longer) there. Returns the sequence of the last record taken; first - 1:
  /// none.
  /// Errors: system, no_memory; header, hole (something else lies where records must). Requires:
  /// records up to `last` were written, or are older than the log.
  /// Cost: a read of each block; a call that does not continue the last one also reads the headers
  /// of the blocks before in its segment.
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
  std::unique_ptr<LogFile> file_;  // null: no position
  std::string name_;
  SegmentHeader segment_{};
  std::uint64_t offset_ = 0;  // of the current block
  std::uint64_t next_ = 0;    // the sequence of its first record
  std::uint64_t limit_ = 0;   // records from here on are those of later segments
  BlockHeader block_{};       // its header, once read
  UnitBuffer buffer_;
};

}  // namespace espalier::log
