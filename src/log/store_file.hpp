// SPDX-License-Identifier: Apache-2.0
// The file that identifies the store of a data folder, so that no log is taken for another store's
// (docs/formats/data.md).
//
//   0       8         12         16      24         28    32
//   +-------+---------+----------+-------+----------+-----+--- zeros up to 4 KiB
//   | magic | version | reserved | store | reserved | crc |
//   +-------+---------+----------+-------+----------+-----+---
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "log/log_error.hpp"
#include "log/log_file.hpp"

namespace espalier::log {

struct StoreHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t reserved;
  std::uint64_t store;  // its number, drawn once; never 0
  std::uint32_t reserved_too;
  std::uint32_t crc;  // CRC-32C of all before it
};
static_assert(sizeof(StoreHeader) == 32 && offsetof(StoreHeader, version) == 8);
static_assert(offsetof(StoreHeader, reserved) == 12 && offsetof(StoreHeader, store) == 16);
static_assert(offsetof(StoreHeader, reserved_too) == 24 && offsetof(StoreHeader, crc) == 28);
static_assert(std::has_unique_object_representations_v<StoreHeader>);

inline constexpr std::uint64_t kStoreMagic = 0x0045'524F'5450'5345;  // "ESPTORE\0"
inline constexpr std::uint32_t kStoreVersion = 1;
inline constexpr std::string_view kStoreName = "store";
inline constexpr std::string_view kNewStoreName = "store.new";  // being made

/// The number of the store whose folder this is; nullopt: there is no file, so it is not a store's
/// folder. Changes nothing. Errors: as open_store_file().
[[nodiscard]] LogResult<std::optional<std::uint64_t>> find_store_file(LogFolder& folder);

/// The number of the store whose folder this is. If there is no file yet, creates it, durably, with
/// the number `drawn`; the call may be repeated after a crash.
/// Errors: store (the file is damaged), newer; system, no_memory. Requires: no other process uses
/// the folder; `drawn` is not 0.
[[nodiscard]] LogResult<std::uint64_t> open_store_file(LogFolder& folder, std::uint64_t drawn);

}  // namespace espalier::log
