// SPDX-License-Identifier: Apache-2.0
#include "log/recovery.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

#include "log/block_reader.hpp"
#include "log/planted_log_bugs.hpp"
#include "log/read_ahead.hpp"
#include "log/unit_buffer.hpp"

namespace espalier::log {
namespace {

constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

struct Entry {
  std::uint64_t number = 0;
  std::string file;
  std::optional<SegmentHeader> header;  // nothing: it is damaged
  std::uint64_t limit = kNoLimit;       // its records from here on do not count
  bool limit_after_loss = false;        // for their loss was accepted
  bool before_damaged = false;          // the next one is damaged
};

/// The bytes of a segment, of which as many are read as are wanted, and some ahead.
class SegmentBytes {
 public:
  SegmentBytes(LogFile& file, std::span<std::byte> to) : to_(to), ahead_(file) { begin(); }

  /// So many, or all that there are. Errors: system.
  Result<std::span<const std::byte>> first(std::uint64_t bytes) {
    while (there_ < bytes && ahead_.is_reading()) {
      const std::size_t wanted = piece_bytes();
      const auto read = ahead_.end();
      if (!read) return std::unexpected(read.error());
      there_ += *read;
      if (*read == wanted) begin();  // else it ends there
    }
    return to_.first(there_);
  }
  Result<std::span<const std::byte>> all() { return first(to_.size()); }
  /// All, as far as that is known.
  [[nodiscard]] std::uint64_t most() const { return ahead_.is_reading() ? to_.size() : there_; }

 private:
  [[nodiscard]] std::size_t piece_bytes() const {
    return std::min(kPieceBytes, to_.size() - there_);
  }
  void begin() {
    if (there_ < to_.size()) ahead_.begin(there_, to_.subspan(there_, piece_bytes()));
  }

  const std::span<std::byte> to_;
  std::size_t there_ = 0;
  ReadAhead ahead_;
};

class Recovery {
 public:
  Recovery(LogFolder& folder, const RecoveryTerms& terms, const ApplyRecord& apply)
      : folder_(folder),
        terms_(terms),
        apply_(apply),
        expected_(terms.from),
        wanted_(std::max(terms.from, terms.through + 1)) {
    // Where all segments are lost, the next is of a later incarnation all the same.
    result_.next_incarnation = terms.incarnation + 1;
  }

  LogResult<SegmentHeaders> headers() {
    if (auto read = read_headers(); !read) return std::unexpected(read.error());
    const bool reaches_back = std::ranges::any_of(entries_, [](const Entry& entry) {
      return !entry.header || entry.header->first_sequence == 1;
    });
    return SegmentHeaders{result_.next_incarnation, reaches_back};
  }
  LogResult<Recovered> run() {
    if (auto read = read_headers(); !read) return std::unexpected(read.error());
    limit_entries();
    for (const Entry& entry : entries_) {
      if (auto taken = take(entry); !taken) return std::unexpected(taken.error());
    }
    return finish();
  }

 private:
  std::unexpected<LogError> fault(LogFault fault, const Entry& entry, std::uint64_t offset,
                                  Error error = {Code::corrupt, 0, 0}) const {
    return log_fail(error, fault, entry.file, offset, expected_);
  }

  LogResult<void> read_headers() {
    if (auto found = find_segments(); !found) return found;
    for (Entry& entry : entries_) {
      if (auto read = read_header(entry); !read) return read;
      // It may be of an incarnation of its own.
      if (!entry.header) ++result_.next_incarnation;
    }
    return {};
  }

  LogResult<void> find_segments() {
    auto names = folder_.names();
    if (!names) return log_fail(names.error(), LogFault::system, ".", 0, expected_);
    std::ranges::sort(*names);
    for (std::string& name : *names) {
      for (const std::string_view end : {kInUse, kBeingMade, kGivenUp}) {
        const auto number = segment_of(name, end);
        if (!number) continue;
        result_.next_segment = std::max(result_.next_segment, *number + 1);
        if (end == kBeingMade) result_.unused.push_back(name);
        if (end == kInUse) entries_.push_back({*number, name, {}, kNoLimit});
      }
    }
    return {};
  }

  /// The records of each segment end where a later one begins.
  void limit_entries() {
    std::uint64_t limit = kNoLimit;
    bool after_loss = false;
    bool damaged = false;
    for (Entry& entry : entries_ | std::views::reverse) {
      entry.limit = limit;
      entry.limit_after_loss = after_loss;
      entry.before_damaged = std::exchange(damaged, !entry.header);
      if (damaged || planted(Bug::limit_ignored)) continue;
      const SegmentHeader& header = *entry.header;
      if (header.first_sequence > limit) continue;
      const bool is_same = header.first_sequence == limit;
      after_loss = header.after_loss != 0 || (is_same && after_loss);
      limit = header.first_sequence;
    }
  }

  /// Errors: those that no accepted loss passes; a damaged header is left out.
  LogResult<void> read_header(Entry& entry) {
    auto file = folder_.open(entry.file);
    if (!file) return fault(LogFault::system, entry, 0, file.error());
    buffer_.reserve(kUnitBytes);
    const auto read = (*file)->read(0, buffer_.bytes().first(kUnitBytes));
    if (!read) return fault(LogFault::system, entry, 0, read.error());
    const auto header =
        read_segment_header(buffer_.bytes().first(*read), terms_.node, entry.number);
    if (header) {
      entry.header = *header;
      result_.next_incarnation = std::max(result_.next_incarnation, header->incarnation + 1);
    } else if (header.error() != LogFault::header) {
      return fault(header.error(), entry, 0, {Code::unsupported, 0, 0});
    }
    return {};
  }

  LogResult<void> take(const Entry& entry) {
    if (!entry.header && (entry.limit <= expected_ || stopped_)) return give_up(entry);
    if (!entry.header) {
      if (!accepts_loss()) return fault(LogFault::header, entry, 0);
      stop_at(entry, 0);
      return give_up(entry);
    }
    const std::uint64_t first = entry.header->first_sequence;
    // Behind a loss that was accepted, now or before. Were it left where it is, it would count
    // again once the header of the segment that was begun then is damaged.
    const bool was_lost = first > entry.limit || (first == entry.limit && entry.limit_after_loss);
    if (stopped_ || was_lost) return give_up(entry);
    const bool is_later = entry.header->incarnation > terms_.incarnation;
    if (entry.header->after_loss != 0 && is_later) wanted_ = terms_.from;
    const bool is_before = !begun_ && entry.limit <= terms_.from;
    if (!is_before && first < entry.limit) {
      if (!begun_ && first <= terms_.from) expected_ = first;
      if (first != expected_) {
        if (!accepts_loss()) {
          return fault(begun_ ? LogFault::out_of_order : LogFault::begins_late, entry, 0);
        }
        stop_at(entry, 0);
        return give_up(entry);
      }
      begun_ = true;
    }
    if (is_before || first >= entry.limit) return keep(entry);
    if (entry.limit <= terms_.from) {
      expected_ = entry.limit;
      return keep(entry);
    }
    if (auto read = read_blocks(entry); !read) return read;
    return stopped_ && expected_ == first ? give_up(entry) : keep(entry);
  }

  LogResult<void> keep(const Entry& entry) {
    result_.segments.push_back({entry.number, entry.header->first_sequence});
    result_.after_loss = result_.after_loss || entry.header->after_loss != 0;
    return {};
  }

  LogResult<void> give_up(const Entry& entry) {
    result_.lost.push_back(entry.file);
    return {};
  }

  LogResult<void> read_blocks(const Entry& entry) {
    auto file = folder_.open(entry.file);
    if (!file) return fault(LogFault::system, entry, 0, file.error());
    // The last block of a killed process may be on its way to the disk still, and a crash after
    // this must not lose what is believed from now on. One whose flush failed may be in the page
    // cache, and nowhere else. So the flush is done, and before the read.
    const bool is_last = entry.limit == kNoLimit;
    if (is_last && !planted(Bug::recovered_unflushed) && !planted(Bug::cache_believed)) {
      if (const auto flushed = (*file)->sync(); !flushed) {
        return fault(LogFault::system, entry, 0, flushed.error());
      }
    }
    const auto size = (*file)->size();
    if (!size) return fault(LogFault::system, entry, 0, size.error());
    const std::uint64_t bytes = std::min<std::uint64_t>(*size, entry.header->segment_bytes);
    const std::uint64_t wanted = base::round_up(bytes, std::uint64_t{kUnitBytes});
    buffer_.reserve(wanted);
    SegmentBytes segment(**file, buffer_.bytes().first(wanted));
    if (is_last && planted(Bug::cache_believed)) {
      static_cast<void>(segment.all());
      static_cast<void>((*file)->sync());
    }
    return take_blocks(entry, segment);
  }

  /// What begins at an offset of a segment: a block, or, where there is none, all that follows.
  struct Behind {
    std::optional<Block> block;
    std::span<const std::byte> rest;
  };
  static Result<Behind> read_behind(const Entry& entry, SegmentBytes& segment,
                                    std::uint64_t offset) {
    auto there = segment.first(offset + kUnitBytes);
    if (!there) return std::unexpected(there.error());
    if (there->size() > offset) {
      const auto header =
          read_block_header(*entry.header, offset, there->subspan(offset), segment.most() - offset);
      if (header) there = segment.first(offset + header->block_bytes);
      if (!there) return std::unexpected(there.error());
      const auto block = read_block(*entry.header, offset, there->subspan(offset));
      if (block) return Behind{block, {}};
    }
    there = segment.all();
    if (!there) return std::unexpected(there.error());
    return Behind{{}, there->subspan(std::min<std::size_t>(offset, there->size()))};
  }

  LogResult<void> take_blocks(const Entry& entry, SegmentBytes& segment) {
    std::uint64_t offset = kBlocksBegin;
    while (expected_ < entry.limit) {
      const auto behind = read_behind(entry, segment, offset);
      if (!behind) return fault(LogFault::system, entry, 0, behind.error());
      const auto& [block, rest] = *behind;
      // Where the header of the next is damaged, that one may begin here, after a loss: what lies
      // behind in this one was given up then.
      if (!block && expected_ < terms_.from && !entry.before_damaged) {
        if (skip_damage(entry, *segment.all(), offset)) continue;
      }
      if (!block) return find_end(entry, offset, rest);
      if (block->header().first_sequence != expected_ || block->next() > entry.limit) {
        if (!accepts_loss()) return fault(LogFault::out_of_order, entry, offset);
        stop_at(entry, offset);
        return {};
      }
      if (auto applied = apply_records(entry, offset, *block); !applied) return applied;
      offset += block->header().block_bytes;
    }
    return {};
  }

  /// Of what a checkpoint has instead nothing is missed: goes on at the next block that is right
  /// and begins at what is wanted, or before. Where it begins behind that, this is missing.
  bool skip_damage(const Entry& entry, std::span<const std::byte> segment, std::uint64_t& offset) {
    std::uint64_t left = kMarkPasses * std::uint64_t{segment.size()};
    for (std::uint64_t at = offset + kUnitBytes; at < segment.size(); at += kUnitBytes) {
      const auto rest = segment.subspan(at);
      const auto header = read_block_header(*entry.header, at, rest);
      if (!header || header->block_bytes > left) continue;
      left -= header->block_bytes;
      if (!read_block(*entry.header, at, rest)) continue;
      if (header->first_sequence < expected_) continue;
      expected_ = std::min(header->first_sequence, terms_.from);
      if (header->first_sequence > terms_.from) return false;
      offset = at;
      return true;
    }
    return false;
  }

  LogResult<void> apply_records(const Entry& entry, std::uint64_t offset, const Block& block) {
    Result<void> applied;
    block.each_record([&](std::uint64_t sequence, std::span<const std::byte> record) {
      expected_ = sequence;
      if (sequence >= terms_.from) applied = apply_(sequence, record);
      return applied.has_value();
    });
    if (!applied) return fault(LogFault::refused, entry, offset, applied.error());
    expected_ = block.next();
    return {};
  }

  /// There is no block: it is the end, unless something shows that there was one.
  LogResult<void> find_end(const Entry& entry, std::uint64_t offset,
                           std::span<const std::byte> rest) {
    const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
    const bool torn = !std::ranges::all_of(rest, is_zero);
    // Where the header of the next is damaged, that one may begin here.
    bool was_durable = entry.limit != kNoLimit && !entry.before_damaged;
    if (torn && !was_durable && !planted(Bug::hole_cut)) {
      was_durable = find_mark(*entry.header, offset, rest).durable >= expected_;
    }
    if (was_durable && !accepts_loss()) return fault(LogFault::hole, entry, offset);
    if (was_durable) {
      stop_at(entry, offset);
    } else {
      end_ = LogEnd{entry.file, offset, expected_, false};
      if (torn) result_.cut = end_;
    }
    return {};
  }

  [[nodiscard]] bool accepts_loss() const {
    return terms_.accept_loss_from && expected_ >= *terms_.accept_loss_from;
  }
  void stop_at(const Entry& entry, std::uint64_t offset) { stop_at(entry.file, offset); }
  void stop_at(const std::string& file, std::uint64_t offset) {
    stopped_ = true;
    result_.cut = LogEnd{file, offset, expected_, true};
  }

  LogResult<Recovered> finish() {
    if (expected_ < wanted_ || (entries_.empty() && wanted_ > 1)) {
      if (auto ended = end_early(); !ended) return std::unexpected(ended.error());
    }
    result_.next_sequence = std::max(expected_, terms_.from);
    return std::move(result_);
  }

  /// The log ends before what a checkpoint wants of it, and perhaps nothing else shows that. It
  /// keeps its last segment, whatever is removed: without any it is another folder's.
  LogResult<void> end_early() {
    if (stopped_) return {};
    const std::string file = entries_.empty() ? "." : end_ ? end_->file : entries_.back().file;
    const std::uint64_t offset = end_ ? end_->offset : 0;
    if (!accepts_loss()) {
      const LogFault fault = entries_.empty() ? LogFault::begins_late : LogFault::hole;
      return log_fail({Code::corrupt, 0, 0}, fault, file, offset, expected_);
    }
    stop_at(file, offset);
    const bool is_empty =
        !result_.segments.empty() && result_.segments.back().first_sequence == expected_;
    if (!is_empty) return {};
    result_.lost.push_back(segment_name(result_.segments.back().number));
    result_.segments.pop_back();
    return {};
  }

  LogFolder& folder_;
  const RecoveryTerms& terms_;
  const ApplyRecord& apply_;
  Recovered result_;
  std::vector<Entry> entries_;
  std::optional<LogEnd> end_;  // where there was no block any more, last
  UnitBuffer buffer_;
  std::uint64_t expected_;  // the sequence of the record that comes
  std::uint64_t wanted_;    // up to there the log must reach, at least
  bool begun_ = false;      // the first segment that counts was found
  bool stopped_ = false;    // a loss was accepted
};

}  // namespace

LogResult<SegmentHeaders> read_segment_headers(LogFolder& folder, const RecoveryTerms& terms) {
  const ApplyRecord none;
  return Recovery(folder, terms, none).headers();
}

LogResult<Recovered> recover(LogFolder& folder, const RecoveryTerms& terms,
                             const ApplyRecord& apply) {
  return Recovery(folder, terms, apply).run();
}

}  // namespace espalier::log
