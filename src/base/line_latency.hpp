// SPDX-License-Identifier: Apache-2.0
// Memory latency, from which prefetch distances are chosen.
//
// Thread: safe, no state but what was measured.
#pragma once

#include <cstdint>

namespace espalier::base {

/// How long a core waits for a line that no cache has, in ns: the least of some attempts. Cost:
/// some 100 microseconds, and 1 MiB for that long. 100 where that cannot be measured: the heap has
/// no memory, or lines cannot be flushed.
[[nodiscard]] std::uint64_t line_latency_ns() noexcept;
/// The same, measured once per process, on the first call. Cost: then that.
[[nodiscard]] std::uint64_t line_latency_of_machine_ns() noexcept;

}  // namespace espalier::base
