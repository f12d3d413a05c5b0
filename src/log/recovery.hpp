// SPDX-License-Identifier: Apache-2.0
// Finds what a log has, and where it ends. It changes nothing, so that it may be begun again.
//
// Records are applied in sequence up to the first block that is not right. What follows is the torn
// tail of a crash, and is cut, unless something shows that the record that would come was durable:
// then it is damage, an error that only `accept_loss_from` passes. It is shown by the mark of a
// block behind, or by a later segment, which begins at a sequence only once all before are durable.
//
// Where a later segment begins at sequence n, a segment's records from n on do not count: an
// earlier recovery cut them.
//
// What a checkpoint says was durable when it was made counts like a mark, until a loss is accepted
// later than that: the segment that is begun then is of a later incarnation.
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
  std::uint64_t from = 1;  // the first record that is wanted, as a checkpoint says
  /// Damage that concerns this sequence, or later ones, is passed: the log ends there.
  std::optional<std::uint64_t> accept_loss_from;
  std::uint64_t through = 0;      // records up to here were durable, as a checkpoint says
  std::uint64_t incarnation = 0;  // of the log when that was made
};

/// Takes one record, in memory that is valid for the call and aligned to 8; sequence 0: of a
/// checkpoint.
using ApplyRecord =
    std::function<Result<void>(std::uint64_t sequence, std::span<const std::byte> record)>;

/// A segment of the log, by ascending numbers.
struct SegmentRange {
  std::uint64_t number = 0;
  std::uint64_t first_sequence = 0;

  friend bool operator==(const SegmentRange&, const SegmentRange&) = default;
};

/// Where the log was cut, and of what.
struct LogEnd {
  std::string file;
  std::uint64_t offset = 0;
  std::uint64_t sequence = 0;  // of the first record that was not there
  bool accepted = false;       // it was damage, and accepted
};

struct Recovered {
  std::vector<SegmentRange> segments;
  std::uint64_t next_sequence = 1;
  std::uint64_t next_segment = 1;
  std::uint64_t next_incarnation = 1;
  std::optional<LogEnd> cut;
  bool after_loss = false;          // one of the segments was begun where a loss was accepted
  std::vector<std::string> unused;  // files that were not yet in use
  std::vector<std::string> lost;    // without a header, or behind damage: their loss was accepted
  /// Log::open's: the checkpoint that recovery began with, and newer ones that are damaged.
  std::optional<CheckpointHeader> checkpoint;
  std::vector<LogError> damaged_checkpoints;
};

/// Reads the log in a folder, and calls `apply` for each record from `from` on.
/// Errors: newer, other_node, begins_late, refused, system; header, hole, out_of_order, which are
/// damage. Records may have been applied before one is found.
[[nodiscard]] LogResult<Recovered> recover(LogFolder& folder, const RecoveryTerms& terms,
                                           const ApplyRecord& apply);

}  // namespace espalier::log
