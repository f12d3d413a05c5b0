// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them: sizes with units, counts with separators. base/byte_size.hpp reads
// sizes.
#pragma once

#include <cstdint>
#include <string>

namespace espalier::tools {

/// 1234567 as "1,234,567".
[[nodiscard]] std::string format_count(std::uint64_t count);

/// 123456789 as "117.7 MiB"; below 1 KiB as "512 B".
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);

/// 83.2 seconds as "1:23", 3725 as "1:02:05".
[[nodiscard]] std::string format_duration(double seconds);

/// 1500 nanoseconds as "1.5 us", 2e9 as "2.0 s".
[[nodiscard]] std::string format_nanoseconds(double ns);

}  // namespace espalier::tools
