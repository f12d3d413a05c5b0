// SPDX-License-Identifier: Apache-2.0
// The log of a node in a folder: opened, recovered, and written on (docs/design/log.md).
//
// Thread: one opens and closes it; its writer any.
#pragma once

#include <functional>
#include <memory>

#include "log/flusher.hpp"
#include "log/log_error.hpp"
#include "log/log_file.hpp"
#include "log/log_writer.hpp"
#include "log/recovery.hpp"

namespace espalier::log {

struct LogOptions {
  RecoveryTerms recovery;
  WriterOptions writer;
  bool threads = true;  // else whoever has it flushes
  /// Is called when all records were applied, before anything in the folder changes; its error is
  /// that of a record (LogFault::refused). None: `apply` has said so of each.
  std::function<Result<void>()> applied{};
};

/// Calls `apply` for each record of the newest checkpoint in a folder, and then of its log from the
/// sequence on with which that began (recovery.hpp). It changes nothing.
/// Errors: those of find_checkpoints(), read_checkpoint() and recover(); where the log begins late,
/// or is not there, that of the newest checkpoint which is damaged, if one is.
[[nodiscard]] LogResult<Recovered> recover_all(LogFolder& folder, RecoveryTerms terms,
                                               const ApplyRecord& apply);

class Log {
 public:
  /// Locks the folder, calls `apply` for each record of the newest checkpoint and then of the log
  /// from the sequence on with which that began, and begins a new segment.
  /// Errors: locked; those of recover_all(); no_memory. A failed call may be made again: it has
  /// lost nothing.
  [[nodiscard]] static LogResult<std::unique_ptr<Log>> open(LogFolder& folder,
                                                            const LogOptions& options,
                                                            const ApplyRecord& apply);
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log();

  /// What was there: for a line to people about a tail that was cut.
  [[nodiscard]] const Recovered& recovered() const { return recovered_; }
  [[nodiscard]] LogWriter& writer() { return *writer_; }
  /// Makes all durable, and stops. Errors: the writer's.
  LogResult<void> close();

 private:
  static LogResult<std::unique_ptr<Log>> begin(LogFolder& folder, const LogOptions& options,
                                               const ApplyRecord& apply);
  Log(std::unique_ptr<FolderLock> lock, Recovered recovered)
      : lock_(std::move(lock)), recovered_(std::move(recovered)) {}

  std::unique_ptr<FolderLock> lock_;
  Recovered recovered_;
  std::unique_ptr<LogWriter> writer_;
  std::unique_ptr<Flusher> flusher_;
  bool closed_ = false;
};

}  // namespace espalier::log
