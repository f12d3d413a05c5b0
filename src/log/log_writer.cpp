// SPDX-License-Identifier: Apache-2.0
#include "log/log_writer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "log/block_reader.hpp"
#include "log/planted_log_bugs.hpp"
#include "log/unit_buffer.hpp"

namespace espalier::log {

LogWriter::LogWriter(LogFolder& folder, std::uint64_t node, const WriterOptions& options,
                     const Recovered& recovered)
    : options_(options),
      room_(options.held_bytes_max, payload_bytes_max(options.segment_bytes)),
      queue_(room_, recovered.next_sequence),
      acknowledgements_(recovered.next_sequence - 1),
      segments_(folder, recovered.segments),
      maker_(folder, node, options.segment_bytes, recovered.next_incarnation,
             recovered.next_segment),
      flushing_(options.block_bytes_max, options.flush_bytes_max),
      order_(options.writes_max),
      written_(recovered.next_sequence - 1) {
  ESPALIER_ASSERT(options.segment_bytes % kUnitBytes == 0);
  ESPALIER_ASSERT(options.segment_bytes >= kSegmentBytesMin);
  ESPALIER_ASSERT(options.segment_bytes <= kSegmentBytesMax);
}

LogResult<std::unique_ptr<LogWriter>> LogWriter::begin(LogFolder& folder, std::uint64_t node,
                                                       const WriterOptions& options,
                                                       const Recovered& recovered) {
  std::unique_ptr<LogWriter> writer(new LogWriter(folder, node, options, recovered));
  if (planted(Bug::goes_on_in_old_segment) && recovered.cut && !recovered.segments.empty()) {
    const SegmentRange last = recovered.segments.back();
    OpenSegment& current = writer->current_;
    current.name = segment_name(last.number);
    auto file = folder.open(current.name);
    if (!file) return log_fail(file.error(), LogFault::system, current.name, 0, 0);
    current.file = std::move(*file);
    UnitBuffer unit;
    unit.reserve(kUnitBytes);
    static_cast<void>(current.file->read(0, unit.bytes()));
    std::memcpy(&current.header, unit.bytes().data(), sizeof current.header);
    writer->offset_ = recovered.cut->offset;
    return writer;
  }
  const bool after_loss = recovered.cut && recovered.cut->accepted;
  if (auto changed = writer->change_segment(after_loss); !changed) {
    return std::unexpected(changed.error());
  }
  return writer;
}

LogResult<void> LogWriter::change_segment(bool after_loss) {
  auto next = maker_.take(written_ + 1, after_loss);
  if (!next) return std::unexpected(next.error());
  current_ = std::move(*next);
  offset_ = kBlocksBegin;
  segments_.add({current_.header.segment, current_.header.first_sequence});
  check_bound();
  return {};
}

std::string LogWriter::failure() const {
  const auto error = acknowledgements_.error();
  return error ? message(*error) : std::string();
}

WriteBegun LogWriter::begin(PendingWrite& write) {
  std::unique_lock lock(writing_);
  RecordList records = queue_.take();
  if (records.empty()) return WriteBegun::nothing;
  if (!failed_) {
    const auto begun = catch_no_memory(written_ + 1, [&] { return begin_locked(write, records); });
    if (begun) {
      queue_.put_back(records);
      return *begun;
    }
    failed_ = begun.error();
    move_records(write.records_, records);
  }
  room_.release_all(records);
  acknowledge_ended(lock);
  return WriteBegun::nothing;
}

/// Takes as many of the records, the first ones, as one write has.
LogResult<WriteBegun> LogWriter::begin_locked(PendingWrite& write, RecordList& records) {
  const bool waits_for_others = !order_.empty() && !current_.file->takes_several();
  if (order_.full() || waits_for_others) return WriteBegun::later;
  BlockBuilder& builder = write.builder_;
  while (true) {
    const std::uint64_t left = records_end(current_.header.segment_bytes) - offset_;
    const std::uint64_t first = records.front().sequence;
    // The mark is of this disk: what a chain's other members have is no matter of damage to it.
    builder.begin(current_.header, offset_, first, planted(Bug::mark_ahead) ? first - 1 : written_);
    while (!records.empty()) {
      const std::size_t bytes = builder.bytes_with(records.front().bytes);
      if (bytes > left || (bytes > options_.flush_bytes_max && !builder.empty())) break;
      builder.add(records.front().payload());
      write.records_.push(records.pop());
    }
    if (!builder.empty()) break;
    if (written_ + 1 != first) return WriteBegun::later;  // a segment begins behind what is durable
    if (auto changed = change_segment(); !changed) return std::unexpected(changed.error());
  }
  write.first_ = write.records_.front().sequence;
  write.last_ = write.records_.back().sequence;
  write.blocks_ = builder.finish();
  write.offset_ = offset_;
  offset_ += write.blocks_.size();
  order_.begin(write);
  queue_.hold(order_.gathers());
  return WriteBegun::begun;
}

void LogWriter::carry_out(PendingWrite& write) {
  if (planted(Bug::acknowledged_early)) acknowledgements_.reach(write.last_);
  write.result_ =
      catch_no_memory(write.first_, [&] { return write_blocks(write.offset_, write.blocks_); });
}

LogResult<void> LogWriter::write_blocks(std::uint64_t offset, std::span<const std::byte> blocks) {
  while (!blocks.empty()) {
    const auto wrote = current_.file->write(offset, blocks);
    if (!wrote) return log_fail(wrote.error(), LogFault::system, current_.name, offset, 0);
    if (*wrote == 0 || *wrote % kUnitBytes != 0) {
      return log_fail({Code::system, 0, EIO}, LogFault::short_write, current_.name, offset, 0);
    }
    // What is left lies in units that nothing was written to yet.
    offset += *wrote;
    written_bytes_ += *wrote;
    blocks = blocks.subspan(*wrote);
  }
  return {};
}

void LogWriter::end(PendingWrite& write) {
  std::unique_lock lock(writing_);
  const bool failed = !write.result_ && !planted(Bug::acknowledged_after_failure);
  if (failed && !failed_) failed_ = write.result_.error();
  order_.end(write);
  acknowledge_ended(lock);
  queue_.hold(order_.gathers());  // last: completed callers may join the next group
}

/// Acknowledges ended writes, or fails the waiters. One thread at a time, so that the keeper gets
/// records in order; it also handles writes that end meanwhile.
void LogWriter::acknowledge_ended(std::unique_lock<std::mutex>& lock) {
  if (acknowledging_) return;
  acknowledging_ = true;
  while (!failed_) {
    RecordList records = order_.take_written();
    if (records.empty()) break;
    const std::uint64_t last = records.back().sequence;
    written_ = last;
    lock.unlock();
    let_go(records);  // first: waiters for room retry once the mark has risen
    acknowledgements_.reach(last);
    lock.lock();
  }
  if (failed_) tell_failure(lock);
  acknowledging_ = false;
  ended_.notify_all();
}

void LogWriter::tell_failure(std::unique_lock<std::mutex>& lock) {
  if (!std::exchange(failure_told_, true)) {
    failed_->sequence = written_ + 1;
    const LogError error = *failed_;
    lock.unlock();
    room_.refuse(error.error);
    acknowledgements_.fail(error);
    lock.lock();
  }
  RecordList records = order_.take_written();
  room_.release_all(records);
}

void LogWriter::await_ended() {
  std::unique_lock lock(writing_);
  ended_.wait(lock, [this] { return failed_ || order_.empty(); });
}

LogResult<void> LogWriter::flush() {
  while (begin(flushing_) == WriteBegun::begun) {
    carry_out(flushing_);
    end(flushing_);
  }
  if (const auto failed = acknowledgements_.error()) return std::unexpected(*failed);
  return {};
}

/// Records that were written.
void LogWriter::let_go(RecordList& records) {
  while (!records.empty()) {
    QueuedRecord* const written = records.pop();
    kept_by_ != nullptr ? kept_by_->keep(*written) : room_.release(written);
  }
  if (kept_by_ != nullptr) kept_by_->kept();
}

void LogWriter::check_bound() {
  const std::scoped_lock lock(bound_);
  room_.pause(!bound_lifted_ && segments_.count() > options_.segments_max);
}

void LogWriter::set_bound_lifted(bool lifted) {
  {
    const std::scoped_lock lock(bound_);
    bound_lifted_ = lifted;
  }
  check_bound();
}

LogResult<void> LogWriter::prepare_spare() {
  const std::uint64_t written = written_bytes_;
  const bool is_early = offset_ < options_.segment_bytes / 2 || written < spare_due_;
  if (is_early || acknowledgements_.error()) return {};
  auto prepared = catch_no_memory(durable() + 1, [this] { return maker_.prepare(); });
  // On a full disk each try takes what is left of it from others for a while.
  if (!prepared) spare_due_ = written + options_.segment_bytes / 8;
  return prepared;
}

LogResult<void> LogWriter::close() {
  if (auto flushed = flush(); !flushed) return flushed;
  return catch_no_memory(written_ + 1, [this] {
    BlockBuilder& builder = flushing_.builder_;
    builder.begin(current_.header, offset_, written_ + 1, written_);
    builder.add_mark();
    auto marked = write_blocks(offset_, builder.finish());
    if (!marked) marked.error().sequence = written_ + 1;
    return marked;
  });
}

LogResult<void> LogWriter::remove_below(std::uint64_t sequence) {
  sequence = std::min({sequence, durable() + 1, keep_from_.load()});
  auto removed = catch_no_memory(sequence, [&] { return segments_.remove_below(sequence); });
  check_bound();
  return removed;
}

}  // namespace espalier::log
