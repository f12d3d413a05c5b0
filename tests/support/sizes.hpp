// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace espalier::test {

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

}  // namespace espalier::test
