// SPDX-License-Identifier: Apache-2.0
#include "log/checkpoint_writer.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/assert.hpp"
#include "base/system_error.hpp"
#include "log/checkpoint_reader.hpp"
#include "log/unit_buffer.hpp"

namespace espalier::log {
namespace {

// At most so much space is taken ahead of what is written.
constexpr std::uint64_t kAheadBytes = std::uint64_t{16} << 20;
// No checkpoint has it, for none would come behind it.
constexpr std::uint64_t kCheckpointNumberMax = ~std::uint64_t{0};

}  // namespace

CheckpointWriter::CheckpointWriter(LogFolder& folder, const CheckpointTerms& terms)
    : folder_(folder), terms_(terms), builder_(terms.block_bytes_max, terms.write_bytes) {
  header_.magic = kCheckpointMagic;
  header_.version = kCheckpointVersion;
  header_.store = terms.store;
  header_.sequence = terms.sequence;
  header_.incarnation = terms.incarnation;
}

LogResult<std::unique_ptr<CheckpointWriter>> CheckpointWriter::begin(LogFolder& folder,
                                                                     const CheckpointTerms& terms) {
  ESPALIER_ASSERT(terms.sequence != 0 && terms.write_bytes >= kUnitBytes);
  return catch_no_memory(terms.sequence, [&]() -> LogResult<std::unique_ptr<CheckpointWriter>> {
    std::unique_ptr<CheckpointWriter> writer(new CheckpointWriter(folder, terms));
    if (auto opened = writer->open(); !opened) return std::unexpected(opened.error());
    return writer;
  });
}

CheckpointWriter::~CheckpointWriter() {
  if (finished_ || !file_) return;
  file_.reset();
  static_cast<void>(folder_.remove(name_));
}

std::unexpected<LogError> CheckpointWriter::failed(Error error) const {
  return log_fail(error, LogFault::system, name_.empty() ? "." : name_, offset_, terms_.sequence);
}

LogResult<void> CheckpointWriter::open() {
  const auto names = folder_.names();
  if (!names) return failed(names.error());
  for (const std::string& name : *names) {
    const auto unfinished = number_in(name, kCheckpointBegin, kBeingMade);
    auto number = unfinished ? unfinished : number_in(name, kCheckpointBegin, kWhole);
    if (!number) number = number_in(name, kCheckpointBegin, kGivenUp);
    if (!number) continue;
    header_.number = std::max(header_.number, *number);
    if (!unfinished) continue;
    if (const auto removed = folder_.remove(name); !removed) return failed(removed.error());
  }
  if (header_.number == kCheckpointNumberMax) {
    const std::string name = numbered_name(kCheckpointBegin, header_.number, kWhole);
    return log_fail({Code::corrupt, 0, 0}, LogFault::checkpoint, name, 0, terms_.sequence);
  }
  ++header_.number;
  if (::getrandom(&header_.salt, sizeof header_.salt, 0) != sizeof header_.salt) {
    return failed(base::refused_by_system().error());
  }
  name_ = numbered_name(kCheckpointBegin, header_.number, kBeingMade);
  auto file = folder_.create(name_);
  if (!file) return failed(file.error());
  file_ = std::move(*file);
  return {};
}

LogResult<void> CheckpointWriter::add(std::span<const std::byte> record) {
  return catch_no_memory(terms_.sequence, [&]() -> LogResult<void> {
    if (gathering_ && builder_.bytes_with(record.size()) > terms_.write_bytes) {
      if (auto written = write_gathered(); !written) return written;
    }
    if (!gathering_) builder_.begin(as_segment(header_), offset_, next_, 0);
    gathering_ = true;
    builder_.add(record);
    next_ = builder_.next();
    return {};
  });
}

LogResult<void> CheckpointWriter::write_gathered() {
  const std::span<const std::byte> blocks = builder_.finish();
  gathering_ = false;
  if (auto written = write_all(offset_, blocks); !written) return written;
  offset_ += blocks.size();
  return {};
}

LogResult<void> CheckpointWriter::write_all(std::uint64_t offset,
                                            std::span<const std::byte> bytes) {
  const std::uint64_t end = offset + bytes.size();
  if (end > extended_) {
    const std::uint64_t more = std::max(end, extended_ + std::min(extended_, kAheadBytes));
    const auto extended = file_->extend(more, terms_.leave_bytes);
    if (!extended) return failed(extended.error());
    extended_ = more;
  }
  while (!bytes.empty()) {
    const auto wrote = file_->write(offset, bytes);
    if (!wrote) return failed(wrote.error());
    // What is left lies in units that nothing was written to yet.
    if (*wrote == 0 || *wrote % kUnitBytes != 0) {
      return log_fail({Code::system, 0, EIO}, LogFault::short_write, name_, offset,
                      terms_.sequence);
    }
    offset += *wrote;
    bytes = bytes.subspan(*wrote);
  }
  return {};
}

LogResult<void> CheckpointWriter::write_header(std::uint64_t through) {
  header_.through = through;
  header_.records = records();
  header_.blocks_end = offset_;
  header_.crc = checksum_of(header_);
  UnitBuffer unit;
  unit.reserve(kUnitBytes);
  std::memset(unit.bytes().data(), 0, kUnitBytes);
  std::memcpy(unit.bytes().data(), &header_, sizeof header_);
  return write_all(0, unit.bytes());
}

LogResult<void> CheckpointWriter::take_name() {
  const auto renamed =
      folder_.rename(name_, numbered_name(kCheckpointBegin, header_.number, kWhole));
  if (!renamed) return failed(renamed.error());
  finished_ = true;  // from now on it may be what counts
  if (const auto synced = folder_.sync(); !synced) return failed(synced.error());
  is_durable_ = true;
  return {};
}

LogResult<void> CheckpointWriter::remove_others() {
  const auto names = folder_.names();
  if (!names) return failed(names.error());
  for (const std::string& name : *names) {
    const auto number = number_in(name, kCheckpointBegin, kWhole);
    if (!number || *number >= header_.number) continue;
    if (const auto removed = folder_.remove(name); !removed) return failed(removed.error());
  }
  return {};
}

LogResult<void> CheckpointWriter::begin_check(std::uint64_t through) {
  if (gathering_) {
    if (auto written = write_gathered(); !written) return written;
  }
  if (auto written = write_header(through); !written) return written;
  auto begun = CheckpointCheck::begin(folder_, header_, name_);
  if (!begun) return std::unexpected(begun.error());
  check_ = std::move(*begun);
  return {};
}

LogResult<bool> CheckpointWriter::check_some(std::uint64_t through) {
  return catch_no_memory(terms_.sequence, [&]() -> LogResult<bool> {
    if (is_checked_) return false;
    if (!check_) {
      if (auto begun = begin_check(through); !begun) return std::unexpected(begun.error());
    }
    const auto more = check_->read_some(terms_.write_bytes);
    if (!more) return more;
    checked_bytes_ = std::min(offset_, checked_bytes_ + terms_.write_bytes);
    is_checked_ = !*more;
    if (is_checked_) check_.reset();
    return more;
  });
}

LogResult<void> CheckpointWriter::finish(std::uint64_t through) {
  return catch_no_memory(terms_.sequence, [&]() -> LogResult<void> {
    while (!is_checked_) {
      if (const auto more = check_some(through); !more) return std::unexpected(more.error());
    }
    if (auto named = take_name(); !named) return named;
    return remove_others();
  });
}

}  // namespace espalier::log
