// SPDX-License-Identifier: Apache-2.0
// How much memory this machine has.
#pragma once

#include <cstdint>

namespace espalier::base {

/// The machine's memory in bytes; 0: the system does not tell.
[[nodiscard]] std::uint64_t machine_memory_bytes();

/// What a store may take when nobody says otherwise: three quarters of the machine's memory, or
/// 1 GiB where that is not known.
[[nodiscard]] std::uint64_t default_store_bytes();

}  // namespace espalier::base
