// SPDX-License-Identifier: Apache-2.0
// Numbers as people write and read them: sizes with units, counts with separators.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace espalier::tools {

/// 1234567 as "1,234,567".
[[nodiscard]] std::string format_count(std::uint64_t count);

/// 123456789 as "117.7 MiB"; below 1 KiB as "512 B".
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);

/// 83.2 seconds as "1:23", 3725 as "1:02:05".
[[nodiscard]] std::string format_duration(double seconds);

/// Reads "4096", "64K", "64KiB", "2M", "1G" (powers of 1024, any case). The error says what is
/// wrong.
[[nodiscard]] std::expected<std::uint64_t, std::string> parse_bytes(std::string_view text);

}  // namespace espalier::tools
