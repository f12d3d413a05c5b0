// SPDX-License-Identifier: Apache-2.0
// Emulated persistent memory: plain memory whose lines are written back, and waited for, as those
// of persistent memory are. What that costs is measured; that it outlives anything is not so.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <span>

namespace espalier::bench {

/// Writes all lines of these bytes back, and waits until that is done. Cost: a line each.
void persist(std::span<const std::byte> bytes) noexcept;

}  // namespace espalier::bench
