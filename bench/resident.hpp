// SPDX-License-Identifier: Apache-2.0
// The resident memory of a process, and its kinds of pages.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace espalier::bench {

struct Resident {
  std::uint64_t bytes = 0;       ///< all resident memory, explicit huge pages included
  std::uint64_t huge_bytes = 0;  ///< the part of it on huge pages, transparent or explicit
};

/// Reads smaps_rollup of this process, which is exact where the counters of statm are not. Cost:
/// walks the page tables. Zeros where there is no such file.
Resident resident();
/// The same for another process. Zeros also without permission.
Resident resident(pid_t process);

/// Memory that could be taken without swapping, as the system reports; 0 if it does not.
std::uint64_t available_bytes();

/// Growth from `before` to `after` as text: "512 of 530 MiB on huge pages".
std::string page_message(const Resident& before, const Resident& after);

}  // namespace espalier::bench
