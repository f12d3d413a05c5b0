// SPDX-License-Identifier: Apache-2.0
// The sizes of keys and salts of encrypted tables (kinds/table/ctr_cipher.hpp).
#pragma once

#include <array>
#include <cstddef>

namespace espalier::table {

inline constexpr std::size_t kKeyBytes = 16;
inline constexpr std::size_t kSaltBytes = 32;

using KeyBytes = std::array<std::byte, kKeyBytes>;
using SaltBytes = std::array<std::byte, kSaltBytes>;

}  // namespace espalier::table
