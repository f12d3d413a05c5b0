// SPDX-License-Identifier: Apache-2.0
#include "log/log.hpp"

#include <algorithm>
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
  const auto set_aside = [&](const std::string& name, const std::string& now) -> LogResult<void> {
    const auto renamed = folder.rename(name, now);
    return renamed ? LogResult<void>() : failed(renamed.error(), name);
  };
  for (const std::string& name : recovered.lost) {
    const std::string now = segment_name(*segment_of(name, kInUse), kGivenUp);
    if (auto renamed = set_aside(name, now); !renamed) return renamed;
  }
  const bool is_accepted = recovered.cut && recovered.cut->accepted;
  // They may be all that there is of what was lost, and the next checkpoint removes older ones.
  if (is_accepted) {
    for (const LogError& damaged : recovered.damaged_checkpoints) {
      const std::string name(damaged.file.text());
      const auto number = number_in(name, kCheckpointBegin, kWhole);
      const std::string now = numbered_name(kCheckpointBegin, *number, kGivenUp);
      if (auto renamed = set_aside(name, now); !renamed) return renamed;
    }
  }
  if (!is_accepted && recovered.lost.empty()) return {};
  if (const auto synced = folder.sync(); !synced) return failed(synced.error(), ".");
  return {};
}

/// Where nothing is there but checkpoints that are damaged, what they had is lost.
LogResult<void> end_at_damaged(const RecoveryTerms& terms, const FoundCheckpoints& found,
                               Recovered& recovered) {
  if (found.newest || found.damaged.empty() || !recovered.segments.empty()) return {};
  const LogError& damaged = found.damaged.front();
  if (recovered.cut && recovered.cut->accepted) return {};
  const bool is_accepted =
      terms.accept_loss_from && *terms.accept_loss_from <= recovered.next_sequence;
  if (!is_accepted) return std::unexpected(damaged);
  recovered.cut =
      LogEnd{std::string(damaged.file.text()), damaged.offset, recovered.next_sequence, true};
  return {};
}

}  // namespace

LogResult<Recovered> recover_all(LogFolder& folder, RecoveryTerms terms, const ApplyRecord& apply) {
  const auto headers = read_segment_headers(folder, terms);
  if (!headers) return std::unexpected(headers.error());
  // Where nothing could replace a damaged checkpoint, it is read once: damage ends the start.
  const bool may_do_without = headers->may_reach_back || terms.accept_loss_from.has_value();
  auto found = find_checkpoints(folder, terms.node,
                                may_do_without ? VerifyNewest::always : VerifyNewest::if_another);
  if (!found) return std::unexpected(found.error());
  if (found->newest) {
    terms.from = found->newest->sequence;
    if (planted(Bug::overlap_skipped)) terms.from = found->newest->through + 1;
    terms.through = found->newest->through;
    terms.incarnation = found->newest->incarnation;
  }
  if (terms.begins) terms.begins(std::max(headers->next_incarnation, terms.incarnation + 1));
  if (found->newest) {
    if (auto read = read_checkpoint(folder, *found->newest, apply); !read) {
      return std::unexpected(read.error());
    }
  }
  auto recovered = recover(folder, terms, apply);
  if (!recovered) {
    // The log need not reach back to where one that is damaged would have gone on from.
    const bool is_late = recovered.error().fault == LogFault::begins_late;
    if (is_late && !found->damaged.empty()) return std::unexpected(found->damaged.front());
    return recovered;
  }
  if (auto ended = end_at_damaged(terms, *found, *recovered); !ended) {
    return std::unexpected(ended.error());
  }
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
  const auto applied = options.applied ? options.applied() : Result<void>();
  if (!applied) {
    return log_fail(applied.error(), LogFault::refused, ".", 0, recovered->next_sequence);
  }
  if (options.incarnation_min) {
    recovered->next_incarnation =
        std::max(recovered->next_incarnation, options.incarnation_min());
  }
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
  // Fail waiters for sequences that were never appended.
  const std::uint64_t next = writer_->durable() + 1;
  writer_->room().refuse({Code::busy, 0, 0});
  writer_->acknowledgements().fail({{Code::busy, 0, 0}, LogFault::closed, FileName("."), 0, next});
  return result;
}

Log::~Log() {
  if (writer_) static_cast<void>(close());
}

}  // namespace espalier::log
