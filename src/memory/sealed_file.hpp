// SPDX-License-Identifier: Apache-2.0
// Files in memory that keep their length, whoever has a descriptor of them.
#pragma once

#include <cstdint>

#include "espalier/error.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::memory {

/// Makes a memfd of this length, without pages, and seals it against shrinking, growing and other
/// seals; not against writing, which would forbid to punch holes. `name` shows in /proc only.
/// Errors: system (detail: errno).
Result<Descriptor> create_sealed(const char* name, std::uint64_t bytes);

/// Whether a file from elsewhere can be mapped for so many bytes and read without a fault.
/// Errors: corrupt (it is no memory that keeps its length, or shorter), system.
Result<void> check_sealed(const Descriptor& descriptor, std::uint64_t bytes);

}  // namespace espalier::memory
