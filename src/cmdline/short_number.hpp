// SPDX-License-Identifier: Apache-2.0
// Numbers for tables, where three digits say enough.
#pragma once

#include <string>

namespace espalier::cmdline {

/// 1234567 as "1.23 M".
[[nodiscard]] std::string short_number(double value);

}  // namespace espalier::cmdline
