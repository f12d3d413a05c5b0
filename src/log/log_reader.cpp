// SPDX-License-Identifier: Apache-2.0
#include "log/log_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

namespace espalier::log {
namespace {

/// A file that is gone was removed behind a checkpoint.
bool is_missing(const Error& error) { return error == Error{Code::system, 0, ENOENT}; }

}  // namespace

std::unexpected<LogError> LogReader::fault(LogFault fault, Error error) const {
  return log_fail(error, fault, name_, offset_, next_);
}

LogResult<std::uint64_t> LogReader::read(std::uint64_t first, std::uint64_t last,
                                         const TakeRecord& take) {
  auto taken = catch_no_memory(first, [&] { return read_blocks(first, last, take); });
  if (!taken) file_.reset();
  return taken;
}

LogResult<std::uint64_t> LogReader::read_blocks(std::uint64_t first, std::uint64_t last,
                                                const TakeRecord& take) {
  std::uint64_t taken = first - 1;
  bool is_enough = false;
  while (taken < last && !is_enough) {
    const auto is_there = go_to(taken + 1);
    if (!is_there) return std::unexpected(is_there.error());
    if (!*is_there) return taken;
    const std::uint64_t behind = block_.first_sequence + block_.records;
    if (behind > taken + 1) {
      const auto block = read_whole_block();
      if (!block) return std::unexpected(block.error());
      block->each_record([&](std::uint64_t sequence, std::span<const std::byte> record) {
        if (sequence <= taken) return true;
        if (sequence > last || sequence >= limit_) return false;
        is_enough = !take(sequence, record);
        if (!is_enough) taken = sequence;
        return !is_enough;
      });
      if (taken + 1 < std::min(behind, limit_)) return taken;  // the next call begins with it
    }
    offset_ += block_.block_bytes;
    next_ = behind;
  }
  return taken;
}

/// Goes to a block that may have this record, or is before it. Returns whether there is one.
LogResult<bool> LogReader::go_to(std::uint64_t sequence) {
  if (file_ && next_ <= sequence && sequence < limit_) {
    const auto there = read_head();
    if (!there || *there) return there;
  }
  const std::uint64_t before = file_ ? segment_.segment : 0;
  const auto found = seek(sequence);
  if (!found || !*found) return found;
  if (segment_.segment == before && offset_ != kBlocksBegin) return false;  // it ends there
  return read_head();
}

/// Goes to the beginning of the segment that has this record, if one does. One that is behind its
/// beginning, and not behind the record, stays where it is.
LogResult<bool> LogReader::seek(std::uint64_t sequence) {
  const std::vector<SegmentRange> segments = segments_.segments();
  std::size_t at = segments.size();
  while (at != 0 && segments[at - 1].first_sequence > sequence) --at;
  if (at == 0) return false;
  const SegmentRange& found = segments[at - 1];
  limit_ = at < segments.size() ? segments[at].first_sequence : ~std::uint64_t{0};
  if (file_ && segment_.segment == found.number && next_ <= sequence) return true;
  file_.reset();
  name_ = segment_name(found.number);
  offset_ = 0;
  next_ = found.first_sequence;
  auto file = folder_.open(name_);
  if (!file && is_missing(file.error())) return false;
  if (!file) return fault(LogFault::system, file.error());
  buffer_.reserve(kUnitBytes);
  const auto got = (*file)->read(0, buffer_.bytes().first(kUnitBytes));
  if (!got) return fault(LogFault::system, got.error());
  const auto header = read_segment_header(buffer_.bytes().first(*got), node_, found.number);
  if (!header) return fault(header.error(), {Code::corrupt, 0, 0});
  segment_ = *header;
  file_ = std::move(*file);
  offset_ = kBlocksBegin;
  return true;
}

/// Reads the head of the block at which it is. Returns whether there is one.
LogResult<bool> LogReader::read_head() {
  buffer_.reserve(kUnitBytes);
  const auto got = file_->read(offset_, buffer_.bytes().first(kUnitBytes));
  if (!got) return fault(LogFault::system, got.error());
  const std::uint64_t rest =
      segment_.segment_bytes - std::min<std::uint64_t>(offset_, segment_.segment_bytes);
  const auto head = read_block_header(segment_, offset_, buffer_.bytes().first(*got), rest);
  if (!head) return false;
  if (head->first_sequence != next_) return fault(LogFault::hole, {Code::corrupt, 0, 0});
  block_ = *head;
  return true;
}

LogResult<Block> LogReader::read_whole_block() {
  buffer_.reserve(block_.block_bytes);
  const auto got = file_->read(offset_, buffer_.bytes().first(block_.block_bytes));
  if (!got) return fault(LogFault::system, got.error());
  const auto block = read_block(segment_, offset_, buffer_.bytes().first(*got));
  if (!block) return fault(LogFault::hole, {Code::corrupt, 0, 0});
  return *block;
}

}  // namespace espalier::log
