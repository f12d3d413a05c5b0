// SPDX-License-Identifier: Apache-2.0
// Waiting for another thread's write without the kernel. A processor with WAITPKG rests until the
// line is written (umonitor, umwait), which leaves its core to the SMT sibling and needs no
// polling; any other is told that this is a spin.
//
// Whether the instructions are there, CPUID alone tells: in virtual machines they may execute and
// take microseconds, or not exist.
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.hpp"

namespace espalier::base {

/// The longest rest, in cycles of the time stamp counter: who waits for several things looks at the
/// others again after about a microsecond.
inline constexpr std::uint64_t kUserWaitCycles = 2048;

/// The form of wait_for_write() for processors with WAITPKG. Requires: cpu_features().waitpkg.
void rest_until_written(const std::byte* word, std::uint32_t seen);

/// Waits a moment for somebody to write `word`'s cache line; at once if the word is not `seen` any
/// more. It may return for no reason. Requires: `word` is aligned to 4 bytes.
inline void wait_for_write(const std::byte* word, std::uint32_t seen) {
  if (cpu_features().waitpkg) {
    rest_until_written(word, seen);
  } else {
    spin_pause();
  }
}

}  // namespace espalier::base
