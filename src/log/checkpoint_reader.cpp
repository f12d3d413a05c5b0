// SPDX-License-Identifier: Apache-2.0
#include "log/checkpoint_reader.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "log/block_reader.hpp"
#include "log/read_ahead.hpp"
#include "log/unit_buffer.hpp"

namespace espalier::log {
namespace {

constexpr Error kDamaged{Code::corrupt, 0, 0};
/// A block that is not longer is moved before the piece that has its end.
constexpr std::size_t kCarriedMax = std::size_t{1} << 20;
/// Of a check beside the service, which has time: less memory, and shorter reads before others'.
constexpr std::size_t kCheckPieceBytes = std::size_t{1} << 20;

/// Reads the blocks of a checkpoint, some at a time.
class BlockStream {
 public:
  BlockStream(LogFile& file, const CheckpointHeader& checkpoint, std::string_view name,
              std::size_t piece_bytes = kPieceBytes)
      : file_(file),
        checkpoint_(checkpoint),
        segment_(as_segment(checkpoint)),
        name_(name),
        piece_bytes_(piece_bytes) {}

  /// Returns whether there is more.
  LogResult<bool> read_some(const ApplyRecord& apply, std::uint64_t bytes) {
    const std::uint64_t until = offset_ + std::min(bytes, checkpoint_.blocks_end - offset_);
    while (offset_ < until) {
      auto block = next_block();
      if (!block) return std::unexpected(block.error());
      if (block->header().first_sequence != next_) return damaged();
      Result<void> applied;
      block->each_record([&](std::uint64_t, std::span<const std::byte> record) {
        applied = apply(0, record);
        return applied.has_value();
      });
      if (!applied) return fault(LogFault::refused, applied.error());
      next_ = block->next();
      offset_ += block->header().block_bytes;
      held_ = held_.subspan(block->header().block_bytes);
    }
    if (offset_ < checkpoint_.blocks_end) return true;
    if (next_ != checkpoint_.records + 1) return damaged();
    return false;
  }
  LogResult<void> read(const ApplyRecord& apply) {
    const auto more = read_some(apply, checkpoint_.blocks_end);
    return more ? LogResult<void>() : std::unexpected(more.error());
  }

 private:
  std::unexpected<LogError> fault(LogFault fault, Error error) const {
    return log_fail(error, fault, name_, offset_, checkpoint_.sequence);
  }
  std::unexpected<LogError> damaged() const { return fault(LogFault::checkpoint, kDamaged); }

  /// The block at the offset; its bytes stay until the next call.
  LogResult<Block> next_block() {
    if (auto there = hold(kUnitBytes); !there) return std::unexpected(there.error());
    BlockHeader header{};
    std::memcpy(&header, held_.data(), sizeof header);
    // Before so much memory is asked for.
    const std::uint64_t left = checkpoint_.blocks_end - offset_;
    const bool is_block = header.magic == kBlockMagic && header.salt == block_salt(segment_) &&
                          header.block_bytes >= kUnitBytes &&
                          header.block_bytes % kUnitBytes == 0 && header.block_bytes <= left &&
                          header.block_bytes <= kCheckpointBlockMax;
    if (!is_block) return damaged();
    if (header.block_bytes > kCarriedMax) {
      const auto right = has_checksum(header);
      if (!right) return std::unexpected(right.error());
      if (!*right) return damaged();
    }
    if (auto there = hold(header.block_bytes); !there) return std::unexpected(there.error());
    const auto block = read_block(segment_, offset_, held_.first(header.block_bytes));
    if (!block) return damaged();
    return *block;
  }
  /// Of a long block, before memory for all of it is asked for: one bit may have made it so long.
  LogResult<bool> has_checksum(const BlockHeader& header) {
    ahead_.give_up();
    UnitBuffer piece;
    piece.reserve(kCarriedMax);
    std::uint32_t state = begin_checksum_of_block(segment_);
    for (std::size_t done = 0; done < header.block_bytes;) {
      const std::size_t count = std::min(kCarriedMax, header.block_bytes - done);
      const auto got = file_.read(offset_ + done, piece.bytes().first(count));
      if (!got) return fault(LogFault::system, got.error());
      if (*got != count) return false;
      const std::size_t begin = done == 0 ? sizeof header.crc : 0;
      state = base::crc32c_extend(state, piece.bytes().first(count).subspan(begin));
      done += count;
    }
    return base::crc32c_end(state) == header.crc;
  }
  /// Has so many bytes from the offset on in memory. Requires: they are before the blocks' end.
  LogResult<void> hold(std::size_t bytes) {
    while (held_.size() < bytes) {
      if (held_end_ >= checkpoint_.blocks_end) return damaged();
      const auto more = held_.size() > kCarriedMax ? hold_long(bytes) : hold_next();
      if (!more) return fault(LogFault::system, more.error());
      if (!*more && held_.size() < bytes) return damaged();
    }
    return {};
  }
  /// What is held, and the piece behind it. Returns whether that is whole.
  Result<bool> hold_next() {
    if (!ahead_.is_reading()) begin_next();
    const std::size_t wanted = next_bytes();
    const auto read = ahead_.end();
    if (!read) return std::unexpected(read.error());
    std::byte* const piece = pieces_[next_piece_].bytes().data() + kCarriedMax;
    if (!held_.empty()) std::memcpy(piece - held_.size(), held_.data(), held_.size());
    held_ = {piece - held_.size(), held_.size() + *read};
    held_end_ += *read;
    next_piece_ = 1 - next_piece_;
    if (held_end_ < checkpoint_.blocks_end && *read == wanted) begin_next();
    return *read == wanted;
  }
  [[nodiscard]] std::size_t next_bytes() const {
    return std::min<std::uint64_t>(piece_bytes_, checkpoint_.blocks_end - held_end_);
  }
  void begin_next() {
    UnitBuffer& to = pieces_[next_piece_];
    to.reserve(kCarriedMax + next_bytes());
    ahead_.begin(held_end_, to.bytes().subspan(kCarriedMax, next_bytes()));
  }
  /// A block that is longer than what is carried from piece to piece. Returns whether it is whole.
  Result<bool> hold_long(std::size_t bytes) {
    ahead_.give_up();
    long_.reserve(bytes);
    const auto read = file_.read(offset_, long_.bytes().first(bytes));
    if (!read) return std::unexpected(read.error());
    held_ = long_.bytes().first(*read);
    held_end_ = offset_ + *read;
    return *read == bytes;
  }

  LogFile& file_;
  const CheckpointHeader& checkpoint_;
  const SegmentHeader segment_;
  const std::string_view name_;
  const std::size_t piece_bytes_;
  std::uint64_t offset_ = kBlocksBegin;
  std::uint64_t next_ = 1;
  std::span<const std::byte> held_;        // from the offset on
  std::uint64_t held_end_ = kBlocksBegin;  // where that ends in the file
  std::array<UnitBuffer, 2> pieces_;       // behind what is carried into them
  std::size_t next_piece_ = 0;             // that is read, or will be
  UnitBuffer long_;
  ReadAhead ahead_{file_};  // goes before the memory that it reads into
};

Result<void> take_nothing(std::uint64_t, std::span<const std::byte>) { return {}; }

/// The header of a file, which is as long as that says.
LogResult<CheckpointHeader> read_begin(LogFile& file, std::uint64_t store, std::uint64_t number,
                                       const std::string& name) {
  UnitBuffer unit;
  unit.reserve(kUnitBytes);
  const auto got = file.read(0, unit.bytes());
  if (!got) return log_fail(got.error(), LogFault::system, name, 0, 0);
  const auto header = read_checkpoint_header(unit.bytes().first(*got), store, number);
  if (!header) {
    const bool is_damage = header.error() == LogFault::checkpoint;
    return log_fail(is_damage ? kDamaged : Error{Code::unsupported, 0, 0}, header.error(), name, 0,
                    0);
  }
  const auto size = file.size();
  if (!size) return log_fail(size.error(), LogFault::system, name, 0, 0);
  if (header->blocks_end > *size) {
    return log_fail(kDamaged, LogFault::checkpoint, name, *size, header->sequence);
  }
  return *header;
}

/// `whole_file`: its blocks are verified too.
LogResult<CheckpointHeader> read_named(LogFolder& folder, std::uint64_t store, std::uint64_t number,
                                       bool whole_file) {
  const std::string name = numbered_name(kCheckpointBegin, number, kWhole);
  auto file = folder.open(name);
  if (!file) return log_fail(file.error(), LogFault::system, name, 0, 0);
  const auto header = read_begin(**file, store, number, name);
  if (!header || !whole_file) return header;
  if (auto whole = BlockStream(**file, *header, name).read(take_nothing); !whole) {
    return std::unexpected(whole.error());
  }
  return *header;
}

}  // namespace

std::expected<CheckpointHeader, LogFault> read_checkpoint_header(std::span<const std::byte> bytes,
                                                                 std::uint64_t store,
                                                                 std::uint64_t number) {
  CheckpointHeader header{};
  if (bytes.size() < sizeof header) return std::unexpected(LogFault::checkpoint);
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kCheckpointMagic) return std::unexpected(LogFault::checkpoint);
  // The checksum is where it is in all versions, so that damage is not taken for a later one.
  if (header.crc != checksum_of(header)) return std::unexpected(LogFault::checkpoint);
  if (header.version > kCheckpointVersion) return std::unexpected(LogFault::newer);
  if (header.version != kCheckpointVersion) return std::unexpected(LogFault::checkpoint);
  if (header.store != store) return std::unexpected(LogFault::other_node);
  const bool right = header.reserved == 0 && header.reserved_too == 0 && header.number == number &&
                     header.sequence != 0 && header.sequence < kSequenceMax &&
                     header.through < kSequenceMax && header.through + 1 >= header.sequence &&
                     header.incarnation < kSequenceMax && header.records < kSequenceMax &&
                     header.blocks_end >= kBlocksBegin && header.blocks_end % kUnitBytes == 0;
  if (!right) return std::unexpected(LogFault::checkpoint);
  return header;
}

/// What it reads, and how far.
class CheckpointCheck::State {
 public:
  State(std::unique_ptr<LogFile> file, const CheckpointHeader& header, std::string name)
      : file_(std::move(file)),
        header_(header),
        name_(std::move(name)),
        blocks_(*file_, header_, name_, kCheckPieceBytes) {}

  LogResult<bool> read_some(std::uint64_t bytes) {
    if (!begun_) {
      const auto begin = read_begin(*file_, header_.store, header_.number, name_);
      if (!begin) return std::unexpected(begin.error());
      if (begin->crc != header_.crc) {
        return log_fail(kDamaged, LogFault::checkpoint, name_, 0, header_.sequence);
      }
      begun_ = true;
    }
    return blocks_.read_some(take_nothing, bytes);
  }

 private:
  const std::unique_ptr<LogFile> file_;
  const CheckpointHeader header_;
  const std::string name_;
  BlockStream blocks_;
  bool begun_ = false;
};

CheckpointCheck::CheckpointCheck(std::unique_ptr<State> state) : state_(std::move(state)) {}
CheckpointCheck::~CheckpointCheck() = default;

LogResult<std::unique_ptr<CheckpointCheck>> CheckpointCheck::begin(LogFolder& folder,
                                                                   const CheckpointHeader& header,
                                                                   const std::string& name) {
  auto file = folder.open(name);
  if (!file) return log_fail(file.error(), LogFault::system, name, 0, header.sequence);
  return std::unique_ptr<CheckpointCheck>(
      new CheckpointCheck(std::make_unique<State>(std::move(*file), header, name)));
}

LogResult<bool> CheckpointCheck::read_some(std::uint64_t bytes) { return state_->read_some(bytes); }

LogResult<FoundCheckpoints> find_checkpoints(LogFolder& folder, std::uint64_t store,
                                             VerifyNewest verify) {
  const auto names = folder.names();
  if (!names) return log_fail(names.error(), LogFault::system, ".", 0, 0);
  FoundCheckpoints found;
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : *names) {
    if (number_in(name, kCheckpointBegin, kBeingMade)) found.unfinished.push_back(name);
    if (const auto number = number_in(name, kCheckpointBegin, kWhole)) numbers.push_back(*number);
  }
  std::ranges::sort(numbers, std::greater());
  const bool verifies = verify == VerifyNewest::always || numbers.size() > 1;
  for (const std::uint64_t number : numbers) {
    const auto header = read_named(folder, store, number, verifies);
    if (header) {
      found.newest = *header;
      break;
    }
    // Of one that the disk does not give the same is true: an older one may do, or the log.
    const bool is_unreadable = header.error().error == Error{Code::system, 0, EIO};
    const bool is_damaged = header.error().fault == LogFault::checkpoint;
    if (!is_damaged && !is_unreadable) return std::unexpected(header.error());
    found.damaged.push_back(header.error());
  }
  return found;
}

LogResult<void> read_checkpoint(LogFolder& folder, const CheckpointHeader& checkpoint,
                                const ApplyRecord& apply) {
  const std::string name = numbered_name(kCheckpointBegin, checkpoint.number, kWhole);
  auto file = folder.open(name);
  if (!file) return log_fail(file.error(), LogFault::system, name, 0, checkpoint.sequence);
  return BlockStream(**file, checkpoint, name).read(apply);
}

}  // namespace espalier::log
