// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace espalier::base {

/// Raises this process's limit of open files to the hard limit, and returns the limit; if the
/// system refuses, it is unchanged. Cost: two system calls.
std::uint64_t raise_descriptor_limit();

}  // namespace espalier::base
