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
      builder_(options.block_bytes_max, options.flush_bytes_max),
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
  keep_bound();
  return {};
}

std::string LogWriter::failure() const {
  const auto error = acknowledgements_.error();
  return error ? message(*error) : std::string();
}

LogResult<void> LogWriter::flush() {
  QueuedRecord* record = queue_.take();
  LogResult<void> result;
  if (const auto failed = acknowledgements_.error()) result = std::unexpected(*failed);
  while (record != nullptr && result) {
    result = catch_no_memory(written_ + 1, [&] { return write_some(record); });
  }
  if (!result) {
    room_.refuse(result.error().error);
    acknowledgements_.fail(result.error());
  }
  room_.release_all(record);
  return result;
}

/// Writes as many as one write takes, of the records from this one on, and acknowledges them.
LogResult<void> LogWriter::write_some(QueuedRecord*& record) {
  const std::uint64_t left = records_end(current_.header.segment_bytes) - offset_;
  // Of this disk: what a chain's other members have is no matter of damage to it.
  builder_.begin(current_.header, offset_, record->sequence, written_);
  QueuedRecord* end = record;
  while (end != nullptr) {
    const std::size_t bytes = builder_.bytes_with(end->bytes);
    if (bytes > left || (bytes > options_.flush_bytes_max && !builder_.empty())) break;
    builder_.add(end->payload());
    end = end->next;
  }
  if (builder_.empty()) return change_segment();  // all before is durable
  const std::uint64_t last = builder_.next() - 1;
  if (planted(Bug::acknowledged_early)) acknowledgements_.reach(last);
  auto written = write_blocks(builder_.finish());
  if (!written && !planted(Bug::acknowledged_after_failure)) return written;
  written_ = last;
  let_go(record, end);  // first: those who wait for room look for it once the mark has risen
  acknowledgements_.reach(last);
  record = end;
  return {};
}

/// Records that were written, up to this one.
void LogWriter::let_go(QueuedRecord* record, const QueuedRecord* end) {
  while (record != end) {
    QueuedRecord* const written = std::exchange(record, record->next);
    kept_by_ != nullptr ? kept_by_->keep(*written) : room_.release(written);
  }
  if (kept_by_ != nullptr) kept_by_->kept();
}

LogResult<void> LogWriter::write_blocks(std::span<const std::byte> blocks) {
  while (!blocks.empty()) {
    const std::uint64_t offset = offset_;
    const auto wrote = current_.file->write(offset, blocks);
    if (!wrote) {
      return log_fail(wrote.error(), LogFault::system, current_.name, offset, written_ + 1);
    }
    if (*wrote == 0 || *wrote % kUnitBytes != 0) {
      return log_fail({Code::system, 0, EIO}, LogFault::short_write, current_.name, offset,
                      written_ + 1);
    }
    // What is left lies in units that nothing was written to yet.
    offset_ = offset + *wrote;
    written_bytes_ += *wrote;
    blocks = blocks.subspan(*wrote);
  }
  return {};
}

void LogWriter::keep_bound() {
  const std::scoped_lock lock(bound_);
  room_.pause(segments_.count() > options_.segments_max);
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
    builder_.begin(current_.header, offset_, written_ + 1, written_);
    builder_.add_mark();
    return write_blocks(builder_.finish());
  });
}

LogResult<void> LogWriter::remove_below(std::uint64_t sequence) {
  sequence = std::min({sequence, durable() + 1, keep_from_.load()});
  auto removed = catch_no_memory(sequence, [&] { return segments_.remove_below(sequence); });
  keep_bound();
  return removed;
}

}  // namespace espalier::log
