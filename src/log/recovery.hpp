// SPDX-License-Identifier: Apache-2.0
// Recovery: reads a log and finds its end. It changes nothing, so it may be repeated.
//
// Records are applied in sequence up to the first invalid block. What follows is the torn tail of a
// crash, and is cut, unless there is evidence that the next record was durable: then it is damage,
// an error that only `accept_loss_from` overrides. The evidence is the mark of a later block, or a
// later segment, because a segment begins at a sequence only once all before it are durable.
//
// If a later segment begins at sequence n, a segment's records from n on are ignored: an earlier
// recovery cut them.
//
// The durable mark of a checkpoint is evidence too, unless a loss was accepted after it: the
// segment begun then is of a later incarnation.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "log/checkpoint_format.hpp"
#include "log/format.hpp"
#include "log/log_error.hpp"
#include "log/log_file.hpp"

namespace espalier::log {

struct RecoveryTerms {
  std::uint64_t node = 0;
  std::uint64_t from = 1;  // the first record wanted, from the checkpoint
  /// Overrides damage at this sequence or later: the log ends there.
  std::optional<std::uint64_t> accept_loss_from;
  std::uint64_t through = 0;      // records up to here were durable, from the checkpoint
  std::uint64_t incarnation = 0;  // of the log at the checkpoint
  /// For recover_all(): called before the first record is applied, with the incarnation in which
  /// the log continues: one for each time that it is opened, ascending.
  std::function<void(std::uint64_t incarnation)> begins{};
};

/// Applies one record, in memory that is valid for the call and aligned to 8; sequence 0: a
/// checkpoint's record.
using ApplyRecord =
    std::function<Result<void>(std::uint64_t sequence, std::span<const std::byte> record)>;

/// A segment of the log, by ascending numbers.
struct SegmentRange {
  std::uint64_t number = 0;
  std::uint64_t first_sequence = 0;

  friend bool operator==(const SegmentRange&, const SegmentRange&) = default;
};

/// Where and why the log ends.
struct LogEnd {
  std::string file;
  std::uint64_t offset = 0;
  std::uint64_t sequence = 0;  // of the first missing record
  bool accepted = false;       // the cut is accepted damage
};

struct Recovered {
  std::vector<SegmentRange> segments;
  std::uint64_t next_sequence = 1;
  std::uint64_t next_segment = 1;
  std::uint64_t next_incarnation = 1;
  std::optional<LogEnd> cut;
  bool after_loss = false;          // one of the segments was begun where a loss was accepted
  std::vector<std::string> unused;  // files not in use yet
  std::vector<std::string> lost;    // segments without a header, or after accepted damage
  /// For Log::open: the checkpoint that recovery began with, and newer, damaged ones.
  std::optional<CheckpointHeader> checkpoint;
  std::vector<LogError> damaged_checkpoints;
};

/// What the headers of segments say before records are read.
struct SegmentHeaders {
  std::uint64_t next_incarnation = 1;  // in which the log continues
  bool may_reach_back = false;         // perhaps to the first record: a checkpoint is not needed
};
/// Cost: reads a unit of each segment. Errors: newer, other_node, system.
[[nodiscard]] LogResult<SegmentHeaders> read_segment_headers(LogFolder& folder,
                                                             const RecoveryTerms& terms);

/// Reads the log in a folder, and calls `apply` for each record from `from` on.
/// Errors: newer, other_node, begins_late, refused, system; header, hole and out_of_order for
/// damage. Records may have been applied before an error is found.
[[nodiscard]] LogResult<Recovered> recover(LogFolder& folder, const RecoveryTerms& terms,
                                           const ApplyRecord& apply);

}  // namespace espalier::log
