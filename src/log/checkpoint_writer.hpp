// SPDX-License-Identifier: Apache-2.0
// Writes a checkpoint (docs/design/checkpoints.md): records, a MiB at a time and durable as they
// are written, then the header; what the disk has is read again before it gets its name.
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
  std::uint64_t sequence = 1;     // records of the log from here on will be applied over it
  std::uint64_t incarnation = 0;  // of the log
  std::size_t block_bytes_max = std::size_t{256} << 10;
  std::size_t write_bytes = std::size_t{1} << 20;
  std::uint64_t leave_bytes = 0;  // of the file system's space, for the log that grows meanwhile
};

class CheckpointCheck;

class CheckpointWriter {
 public:
  /// Begins one, with a number above those that are there; what others have left unfinished goes.
  /// Errors: system, no_memory; checkpoint (one has the highest number). Requires: the folder is
  /// this process's, and no other is made.
  [[nodiscard]] static LogResult<std::unique_ptr<CheckpointWriter>> begin(
      LogFolder& folder, const CheckpointTerms& terms);
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;
  /// One that is not finished is removed, as far as the disk lets.
  ~CheckpointWriter();

  /// The next record. Writes once enough of them are there. Errors: system (ENOSPC also where not
  /// enough would be left), short_write, no_memory; then it is of no use any more.
  LogResult<void> add(std::span<const std::byte> record);
  /// Once all records are there: writes its header, and then reads some of it again from the disk.
  /// Returns whether there is more. `through`: up to this sequence the log is durable. Errors: as
  /// add(), and checkpoint (the disk has something else).
  LogResult<bool> check_some(std::uint64_t through);
  /// Checks what was not checked yet, makes it the newest checkpoint, durably, and removes older
  /// ones. Errors: as check_some(); where older ones could not be removed, this one is there all
  /// the same (finished()).
  LogResult<void> finish(std::uint64_t through);

  [[nodiscard]] bool finished() const { return finished_; }
  /// Whether it stays the newest after a crash, so that what it stands for may go.
  [[nodiscard]] bool is_durable() const { return is_durable_; }
  [[nodiscard]] std::uint64_t number() const { return header_.number; }
  /// How many records it has by now, and bytes that were written.
  [[nodiscard]] std::uint64_t records() const { return next_ - 1; }
  [[nodiscard]] std::uint64_t bytes() const { return offset_; }
  /// And bytes that were read again.
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
  std::string name_;  // while it is made
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
