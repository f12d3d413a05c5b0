// SPDX-License-Identifier: Apache-2.0
#include "log/log.hpp"

#include <utility>

#include "log/checkpoint_reader.hpp"
#include "log/planted_log_bugs.hpp"

namespace espalier::log {
namespace {

std::unexpected<LogError> failed(Error error, const std::string& name) {
  return log_fail(error, LogFault::system, name, 0, 0);
}

/// Segments and checkpoints that a crash has left unfinished.
LogResult<void> remove_unused(LogFolder& folder, const Recovered& recovered) {
  for (const std::string& name : recovered.unused) {
    if (const auto removed = folder.remove(name); !removed) return failed(removed.error(), name);
  }
  return {};
}

/// Once a new segment has begun where their loss was accepted.
LogResult<void> rename_lost(LogFolder& folder, const Recovered& recovered) {
  if (planted(Bug::lost_kept)) return {};
  for (const std::string& name : recovered.lost) {
    const std::string now = segment_name(*segment_of(name, kInUse), kGivenUp);
    const auto renamed = folder.rename(name, now);
    if (!renamed) return failed(renamed.error(), name);
  }
  if (recovered.lost.empty()) return {};
  if (const auto synced = folder.sync(); !synced) return failed(synced.error(), ".");
  return {};
}

}  // namespace

LogResult<Recovered> recover_all(LogFolder& folder, RecoveryTerms terms, const ApplyRecord& apply) {
  auto found = find_checkpoints(folder, terms.node);
  if (!found) return std::unexpected(found.error());
  if (found->newest) {
    terms.from = found->newest->sequence;
    if (planted(Bug::overlap_skipped)) terms.from = found->newest->through + 1;
    terms.through = found->newest->through;
    terms.incarnation = found->newest->incarnation;
    if (auto read = read_checkpoint(folder, *found->newest, apply); !read) {
      return std::unexpected(read.error());
    }
  }
  auto recovered = recover(folder, terms, apply);
  if (!recovered) return recovered;
  recovered->checkpoint = found->newest;
  recovered->damaged_checkpoints = std::move(found->damaged);
  for (std::string& name : found->unfinished) recovered->unused.push_back(std::move(name));
  return recovered;
}

LogResult<std::unique_ptr<Log>> Log::open(LogFolder& folder, const LogOptions& options,
                                          const ApplyRecord& apply) {
  return catch_no_memory(options.recovery.from, [&] { return begin(folder, options, apply); });
}

LogResult<std::unique_ptr<Log>> Log::begin(LogFolder& folder, const LogOptions& options,
                                           const ApplyRecord& apply) {
  auto lock = folder.lock();
  if (!lock) {
    const bool taken = lock.error().code == Code::busy;
    const LogFault fault = taken ? LogFault::locked : LogFault::system;
    return log_fail(lock.error(), fault, "lock", 0, 0);
  }
  auto recovered = recover_all(folder, options.recovery, apply);
  if (!recovered) return std::unexpected(recovered.error());
  if (auto removed = remove_unused(folder, *recovered); !removed) {
    return std::unexpected(removed.error());
  }
  std::unique_ptr<Log> log(new Log(std::move(*lock), std::move(*recovered)));
  auto writer = LogWriter::begin(folder, options.recovery.node, options.writer, log->recovered_);
  if (!writer) return std::unexpected(writer.error());
  log->writer_ = std::move(*writer);
  if (auto renamed = rename_lost(folder, log->recovered_); !renamed) {
    return std::unexpected(renamed.error());
  }
  if (!options.threads) return log;
  auto flusher = Flusher::start(*log->writer_);
  if (!flusher) return std::unexpected(flusher.error());
  log->flusher_ = std::move(*flusher);
  return log;
}

LogResult<void> Log::close() {
  if (closed_) return {};
  closed_ = true;
  flusher_.reset();
  auto result = writer_->close();
  // Those who wait for what nobody has appended.
  const std::uint64_t next = writer_->durable() + 1;
  writer_->room().refuse({Code::busy, 0, 0});
  writer_->acknowledgements().fail({{Code::busy, 0, 0}, LogFault::closed, FileName("."), 0, next});
  return result;
}

Log::~Log() {
  if (writer_) static_cast<void>(close());
}

}  // namespace espalier::log
