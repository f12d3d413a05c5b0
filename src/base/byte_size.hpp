// SPDX-License-Identifier: Apache-2.0
// Sizes in bytes as people write them in options and settings, read and written without loss.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace espalier::base {

/// Reads "4096", "64K", "64KiB", "2M", "1G" (powers of 1024, any case). The error says what is
/// wrong.
[[nodiscard]] std::expected<std::uint64_t, std::string> parse_bytes(std::string_view text);

/// The shortest text that parse_bytes() reads back as `bytes`: 65536 as "64KiB", 1000 as "1000B".
[[nodiscard]] std::string exact_bytes(std::uint64_t bytes);

}  // namespace espalier::base
