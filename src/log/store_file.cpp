// SPDX-License-Identifier: Apache-2.0
#include "log/store_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "base/crc32c.hpp"
#include "log/format.hpp"
#include "log/unit_buffer.hpp"

namespace espalier::log {
namespace {

std::unexpected<LogError> not_opened(Error error, LogFault fault) {
  return log_fail(error, fault, kStoreName, 0, 0);
}

std::uint32_t crc_of(const StoreHeader& header) {
  return base::crc32c(std::as_bytes(std::span(&header, 1)).first(offsetof(StoreHeader, crc)));
}

LogResult<std::uint64_t> read_store_number(LogFolder& folder, std::span<std::byte> unit) {
  auto file = folder.open(kStoreName);
  if (!file) return not_opened(file.error(), LogFault::system);
  const auto got = (*file)->read(0, unit);
  if (!got) return not_opened(got.error(), LogFault::system);
  StoreHeader header{};
  if (*got >= sizeof header) std::memcpy(&header, unit.data(), sizeof header);
  if (header.magic != kStoreMagic || header.crc != crc_of(header)) {
    return not_opened({Code::corrupt, 0, 0}, LogFault::store);
  }
  if (header.version != kStoreVersion) {
    return not_opened({Code::unsupported, 0, header.version}, LogFault::newer);
  }
  if (header.store == 0) return not_opened({Code::corrupt, 0, 0}, LogFault::store);
  return header.store;
}

Result<void> write_store_number(LogFolder& folder, std::uint64_t drawn, std::span<std::byte> unit) {
  StoreHeader header{kStoreMagic, kStoreVersion, 0, drawn, 0, 0};
  header.crc = crc_of(header);
  std::ranges::fill(unit, std::byte{0});
  std::memcpy(unit.data(), &header, sizeof header);
  {
    auto file = folder.create(kNewStoreName);
    if (!file) return std::unexpected(file.error());
    if (const auto filled = (*file)->fill(unit.size()); !filled) return filled;
    const auto wrote = (*file)->write(0, unit);
    if (!wrote) return std::unexpected(wrote.error());
    if (*wrote != unit.size()) return fail(Code::system, EIO);
  }
  if (auto renamed = folder.rename(kNewStoreName, kStoreName); !renamed) return renamed;
  return folder.sync();
}

bool has_name(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

LogResult<std::optional<std::uint64_t>> find_number(LogFolder& folder) {
  const auto names = folder.names();
  if (!names) return not_opened(names.error(), LogFault::system);
  if (!has_name(*names, kStoreName)) return std::nullopt;
  UnitBuffer unit;
  unit.reserve(kUnitBytes);
  const auto number = read_store_number(folder, unit.bytes());
  if (!number) return std::unexpected(number.error());
  return *number;
}

LogResult<std::uint64_t> read_or_make(LogFolder& folder, std::uint64_t drawn) {
  const auto names = folder.names();
  if (!names) return not_opened(names.error(), LogFault::system);
  const auto has = [&](std::string_view name) { return has_name(*names, name); };
  UnitBuffer unit;
  unit.reserve(kUnitBytes);
  if (has(kStoreName)) return read_store_number(folder, unit.bytes());
  // One that a crash has left half made.
  if (has(kNewStoreName)) {
    if (const auto removed = folder.remove(kNewStoreName); !removed) {
      return not_opened(removed.error(), LogFault::system);
    }
  }
  const auto made = write_store_number(folder, drawn, unit.bytes());
  if (!made) return not_opened(made.error(), LogFault::system);
  return drawn;
}

}  // namespace

LogResult<std::optional<std::uint64_t>> find_store_file(LogFolder& folder) {
  return catch_no_memory(0, [&] { return find_number(folder); });
}

LogResult<std::uint64_t> open_store_file(LogFolder& folder, std::uint64_t drawn) {
  ESPALIER_ASSERT(drawn != 0);
  return catch_no_memory(0, [&] { return read_or_make(folder, drawn); });
}

}  // namespace espalier::log
