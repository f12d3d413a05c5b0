// SPDX-License-Identifier: Apache-2.0
#include "log/segment_maker.hpp"

#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/system_error.hpp"
#include "log/planted_log_bugs.hpp"
#include "log/unit_buffer.hpp"

namespace espalier::log {
namespace {

Result<std::uint64_t> draw_salt() {
  std::uint64_t salt = 0;
  if (planted(Bug::salt_guessable)) return salt;
  if (::getrandom(&salt, sizeof salt, 0) != sizeof salt) return base::refused_by_system();
  return salt;
}

}  // namespace

LogResult<void> SegmentMaker::prepare() {
  const std::scoped_lock lock(mutex_);
  return spare_ ? LogResult<void>() : fill_locked();
}

LogResult<void> SegmentMaker::fill_locked() {
  const std::uint64_t number = next_segment_++;
  const std::string name = segment_name(number, kBeingMade);
  auto file = folder_.create(name);
  if (!file) return log_fail(file.error(), LogFault::system, name, 0, 0);
  if (const auto filled = (*file)->fill(segment_bytes_); !filled) {
    // On a full disk it would keep others from what is left of it.
    static_cast<void>(folder_.remove(name));
    return log_fail(filled.error(), LogFault::system, name, 0, 0);
  }
  spare_ = std::move(*file);
  spare_number_ = number;
  return {};
}

LogResult<OpenSegment> SegmentMaker::take(std::uint64_t first_sequence, bool after_loss) {
  const std::scoped_lock lock(mutex_);
  if (!spare_) {
    if (auto filled = fill_locked(); !filled) {
      filled.error().sequence = first_sequence;
      return std::unexpected(filled.error());
    }
  }
  OpenSegment made{std::move(spare_), segment_name(spare_number_), {}};
  const auto failed = [&](Error error) {
    return log_fail(error, LogFault::system, made.name, 0, first_sequence);
  };
  const auto salt = draw_salt();
  if (!salt) return failed(salt.error());
  made.header = {kSegmentMagic, kFormatVersion, segment_bytes_, node_,      spare_number_,
                 incarnation_,  first_sequence, *salt,          after_loss, 0};
  made.header.crc = checksum_of(made.header);
  UnitBuffer unit;
  unit.reserve(kUnitBytes);
  std::memset(unit.bytes().data(), 0, kUnitBytes);
  std::memcpy(unit.bytes().data(), &made.header, sizeof made.header);
  if (planted(Bug::header_late)) {
    static_cast<void>(folder_.rename(segment_name(spare_number_, kBeingMade), made.name));
    static_cast<void>(folder_.sync());
  }
  const auto written = made.file->write(0, unit.bytes());
  if (!written) return failed(written.error());
  if (*written != kUnitBytes) {
    return log_fail({Code::system, 0, EIO}, LogFault::short_write, made.name, 0, first_sequence);
  }
  if (planted(Bug::header_late)) return made;
  const auto renamed = folder_.rename(segment_name(spare_number_, kBeingMade), made.name);
  if (!renamed) return failed(renamed.error());
  if (const auto synced = folder_.sync(); !synced) return failed(synced.error());
  return made;
}

}  // namespace espalier::log
