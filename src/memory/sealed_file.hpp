// SPDX-License-Identifier: Apache-2.0
// Memory files of fixed length, which no holder of a descriptor can change.
#pragma once

#include <cstdint>

#include "espalier/error.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::memory {

/// Makes a memfd of this length, without pages, and seals it against shrinking, growing and other
/// seals; not against writing, which would forbid to punch holes. `name` shows in /proc only.
/// Errors: system (detail: errno).
Result<Descriptor> create_sealed(const char* name, std::uint64_t bytes);

/// Checks that a foreign file can be mapped for so many bytes and read without a fault.
/// Errors: corrupt (it is not sealed memory, or is shorter), system.
Result<void> check_sealed(const Descriptor& descriptor, std::uint64_t bytes);

}  // namespace espalier::memory
