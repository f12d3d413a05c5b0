// SPDX-License-Identifier: Apache-2.0
// Names a process of this machine so that the name is not reused: by pid and start time.
//
//   63          42 41                                0
//  +--------------+-----------------------------------+
//  | pid          | start time, clock ticks since boot|
//  +--------------+-----------------------------------+
//
// Only processes that see the same pid namespace can judge each other.
#pragma once

#include <cstdint>
#include <string_view>

#include "espalier/error.hpp"

namespace espalier::base {

/// 0 names no process.
struct ProcessId {
  std::uint64_t bits = 0;

  [[nodiscard]] constexpr std::uint32_t pid() const {
    return static_cast<std::uint32_t>(bits >> 42);
  }
  friend constexpr bool operator==(ProcessId, ProcessId) = default;
};

/// The calling process. Cost: reads a file of /proc. Errors: system (detail: errno).
Result<ProcessId> this_process();

/// Whether the process has ended: gone, a zombie, or its pid is another process's now. In doubt
/// (its file cannot be read for another reason than that it is gone): false.
/// Cost: reads a file of /proc.
[[nodiscard]] bool has_ended(ProcessId process);

/// The fields of /proc/<pid>/stat that matter here.
struct ProcessStat {
  char state = '\0';
  std::uint64_t start_ticks = 0;
};

/// Reads a line of /proc/<pid>/stat, whose second field may hold any characters.
/// Errors: corrupt (detail: 1 no name, 2 too few fields, 3 not a number).
Result<ProcessStat> parse_process_stat(std::string_view line);

}  // namespace espalier::base
