// SPDX-License-Identifier: Apache-2.0
// Writes a checkpoint (docs/design/checkpoints.md): records, a MiB at a time, each durable when
// written, then the header. It reads the disk back before it gives the file its name.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "log/block_builder.hpp"
#include "log/checkpoint_format.hpp"
#include "log/log_error.hpp"
#include "log/log_file.hpp"

namespace espalier::log {

struct CheckpointTerms {
  std::uint64_t store = 0;
  std::uint64_t sequence = 1;     // replay will begin with this record of the log
  std::uint64_t incarnation = 0;  // of the log
  std::size_t block_bytes_max = std::size_t{256} << 10;
  std::size_t write_bytes = std::size_t{1} << 20;
  std::uint64_t leave_bytes = 0;  // space to leave in the file system, for the growing log
};

class CheckpointCheck;

class CheckpointWriter {
 public:
  /// Begins a checkpoint, with a number above the existing ones; removes unfinished ones of others.
  /// Errors: system, no_memory; checkpoint (one has the highest number). Requires: the folder is
  /// this process's, and no other checkpoint is being written.
  [[nodiscard]] static LogResult<std::unique_ptr<CheckpointWriter>> begin(
      LogFolder& folder, const CheckpointTerms& terms);
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;
  /// Removes an unfinished checkpoint, as far as the disk permits.
  ~CheckpointWriter();

  /// Adds the next record. Writes once enough of them are gathered. Errors: system (ENOSPC also if
  /// less than `leave_bytes` would remain), short_write, no_memory; the writer is unusable after an
  /// error.
  LogResult<void> add(std::span<const std::byte> record);
  /// After the last record: writes the header, then reads some of the file back from the disk.
  /// Returns whether there is more. `through`: the log is durable up to this sequence. Errors: as
  /// add(), and checkpoint (the disk has something else).
  LogResult<bool> check_some(std::uint64_t through);
  /// Checks the rest, makes it durably the newest checkpoint, and removes older ones. Errors: as
  /// check_some(). If older ones could not be removed, this one is complete all the same
  /// (finished()).
  LogResult<void> finish(std::uint64_t through);

  [[nodiscard]] bool finished() const { return finished_; }
  /// Whether it stays the newest after a crash, so that the log and checkpoints that it replaces
  /// may be removed.
  [[nodiscard]] bool is_durable() const { return is_durable_; }
  [[nodiscard]] std::uint64_t number() const { return header_.number; }
  /// Number of records so far, and bytes written.
  [[nodiscard]] std::uint64_t records() const { return next_ - 1; }
  [[nodiscard]] std::uint64_t bytes() const { return offset_; }
  /// Bytes read back.
  [[nodiscard]] std::uint64_t checked_bytes() const { return checked_bytes_; }

 private:
  CheckpointWriter(LogFolder& folder, const CheckpointTerms& terms);

  [[nodiscard]] std::unexpected<LogError> failed(Error error) const;
  LogResult<void> open();
  LogResult<void> write_gathered();
  LogResult<void> write_all(std::uint64_t offset, std::span<const std::byte> bytes);
  LogResult<void> write_header(std::uint64_t through);
  LogResult<void> begin_check(std::uint64_t through);
  LogResult<void> take_name();
  LogResult<void> remove_others();

  LogFolder& folder_;
  const CheckpointTerms terms_;
  CheckpointHeader header_{};
  std::string name_;  // while it is being written
  std::unique_ptr<LogFile> file_;
  BlockBuilder builder_;
  bool gathering_ = false;  // records are in the builder
  std::uint64_t offset_ = kBlocksBegin;
  std::uint64_t extended_ = 0;
  std::uint64_t next_ = 1;
  std::unique_ptr<CheckpointCheck> check_;
  std::uint64_t checked_bytes_ = 0;
  bool is_checked_ = false;
  bool finished_ = false;
  bool is_durable_ = false;
};

}  // namespace espalier::log
