// SPDX-License-Identifier: Apache-2.0
// How long memory takes, for who chooses by it how far ahead lines are asked for.
//
// Thread: safe, no state but what was measured.
#pragma once

#include <cstdint>

namespace espalier::base {

/// How long a core waits for a line that no cache has, in ns: the least of some attempts. Cost:
/// some 100 microseconds, and 1 MiB for that long. 100 where that cannot be measured: the heap has
/// no memory, or caches cannot be told to give a line up.
[[nodiscard]] std::uint64_t line_latency_ns() noexcept;
/// The same, measured when this process first asks for it. Cost: then that.
[[nodiscard]] std::uint64_t line_latency_of_machine_ns() noexcept;

}  // namespace espalier::base
