// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace espalier::base {

/// Lets this process have as many files open as the system lets it ask for, and returns how many
/// that are; where it refuses, the limit stays as it was. Cost: two system calls.
std::uint64_t raise_descriptor_limit();

}  // namespace espalier::base
