// SPDX-License-Identifier: Apache-2.0
// Waits for another thread's write without the kernel. A processor with WAITPKG rests until the
// line is written (umonitor, umwait), which leaves its core to the SMT sibling and needs no
// polling; on any other the thread pauses and spins.
//
// CPUID alone decides whether the instructions exist: in virtual machines they may execute and take
// microseconds, or fault.
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.hpp"

namespace espalier::base {

/// The longest rest, in cycles of the time stamp counter: a thread that waits for several things
/// polls the others again after about a microsecond.
inline constexpr std::uint64_t kUserWaitCycles = 2048;

/// The form of wait_for_write() for processors with WAITPKG. Requires: cpu_features().waitpkg.
void rest_until_written(const std::byte* word, std::uint32_t seen);

/// Waits a moment for another thread to write `word`'s cache line; returns immediately if the word
/// is no longer `seen`. May return spuriously. Requires: `word` is aligned to 4 bytes.
inline void wait_for_write(const std::byte* word, std::uint32_t seen) {
  if (cpu_features().waitpkg) {
    rest_until_written(word, seen);
  } else {
    spin_pause();
  }
}

}  // namespace espalier::base
