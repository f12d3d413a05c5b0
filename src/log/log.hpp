// SPDX-License-Identifier: Apache-2.0
// The log of a node, in a folder: opening, recovery and appending (docs/design/log.md).
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
  bool threads = true;  // else the owner flushes
  /// Called after all records were applied, before anything in the folder changes; its error counts
  /// as a record's (LogFault::refused). Empty: `apply` has reported on each.
  std::function<Result<void>()> applied{};
  /// Called then: the log continues in this incarnation, or in the one after its last if that is
  /// higher. Empty: the latter.
  std::function<std::uint64_t()> incarnation_min{};
};

/// Replays: calls `apply` for each record of the newest checkpoint in a folder, then for the log
/// from the sequence where that checkpoint begins (recovery.hpp). Changes nothing.
/// Errors: those of find_checkpoints(), read_checkpoint() and recover(). If the log begins late, or
/// is missing, the error of the newest damaged checkpoint, if there is one.
[[nodiscard]] LogResult<Recovered> recover_all(LogFolder& folder, RecoveryTerms terms,
                                               const ApplyRecord& apply);

class Log {
 public:
  /// Locks the folder, replays the newest checkpoint and the log through `apply`, and begins a new
  /// segment. Errors: locked; those of recover_all(); no_memory. A failed call may be repeated: it
  /// has lost nothing.
  [[nodiscard]] static LogResult<std::unique_ptr<Log>> open(LogFolder& folder,
                                                            const LogOptions& options,
                                                            const ApplyRecord& apply);
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log();

  /// The result of recovery, e.g. for a message about a torn tail.
  [[nodiscard]] const Recovered& recovered() const { return recovered_; }
  [[nodiscard]] LogWriter& writer() { return *writer_; }
  /// Makes all records durable, and stops. Errors: the writer's.
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
