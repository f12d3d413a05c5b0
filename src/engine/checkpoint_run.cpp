// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint_run.hpp"

#include <utility>

#include "log/planted_log_bugs.hpp"

namespace espalier::offload {
namespace {

// A log that finds no space for its next segment has failed for good, so a checkpoint that runs
// short of space stops before. It checks again every 16 MiB, in which the log fills fewer segments.
constexpr std::uint64_t kSegmentsLeft = 4;

}  // namespace

using log::LogResult;

LogResult<std::unique_ptr<CheckpointRun>> CheckpointRun::begin(const Terms& terms) {
  return log::catch_no_memory(0, [&]() -> LogResult<std::unique_ptr<CheckpointRun>> {
    auto held = hold(terms);
    std::unique_ptr<CheckpointRun> run(new CheckpointRun(terms));
    if (held) held.unlock();
    log::CheckpointTerms file;
    file.store = terms.store;
    file.sequence = run->sequence();
    file.incarnation = terms.log.incarnation();
    file.write_bytes = terms.write_bytes;
    file.leave_bytes = kSegmentsLeft * terms.log.segment_bytes();
    auto writer = log::CheckpointWriter::begin(terms.folder, file);
    if (!writer) return std::unexpected(writer.error());
    run->writer_ = std::move(*writer);
    return run;
  });
}

LogResult<CheckpointRun::State> CheckpointRun::step() {
  // A failed log would never finish the flush.
  if (const auto failed = terms_.log.acknowledgements().error()) return std::unexpected(*failed);
  return copied_ ? finish() : copy_some();
}

LogResult<CheckpointRun::State> CheckpointRun::copy_some() {
  piece_.clear();
  auto held = hold(terms_);
  const auto step = copy_.next(piece_);
  if (held) held.unlock();
  if (!step) return log::log_fail(step.error(), log::LogFault::copy, ".", 0, sequence());
  LogResult<void> added;
  piece_.each([&](std::span<const std::byte> record) {
    added = writer_->add(record);
    return added.has_value();
  });
  if (!added) return std::unexpected(added.error());
  if (*step == CopyStep::wait) return State::waiting;
  if (*step == CopyStep::done) {
    copied_ = true;
    through_ = terms_.log.handed_over();
  }
  return State::copying;
}

// The copy may contain effects of records up to here, so it is valid only once these are durable.
LogResult<CheckpointRun::State> CheckpointRun::finish() {
  if (terms_.log.durable() < through_ && !planted(log::Bug::checkpoint_named_early)) {
    return State::waiting;
  }
  if (planted(log::Bug::log_removed_early)) {
    static_cast<void>(terms_.log.remove_below(sequence()));
  }
  const auto more = writer_->check_some(through_);
  if (!more) return std::unexpected(more.error());
  if (*more) return State::copying;
  const auto finished = writer_->finish(through_);
  if (!finished && !writer_->is_durable()) return std::unexpected(finished.error());
  // A failure to remove older checkpoints is no reason to keep the log.
  if (auto removed = terms_.log.remove_below(sequence()); !removed) {
    return std::unexpected(removed.error());
  }
  if (!finished) return std::unexpected(finished.error());
  return State::done;
}

}  // namespace espalier::offload
