// SPDX-License-Identifier: Apache-2.0
// How much memory this process holds, and on which pages.
#pragma once

#include <cstdint>
#include <string>

namespace espalier::bench {

struct Resident {
  std::uint64_t bytes = 0;       ///< all resident memory, explicit huge pages included
  std::uint64_t huge_bytes = 0;  ///< the part of it on huge pages, transparent or explicit
};

/// Reads /proc/self/smaps_rollup, which is exact where the counters of statm are not. Cost: walks
/// the page tables. Zeros where there is no such file.
Resident resident();

/// Growth from `before` to `after` in words: "512 of 530 MiB on huge pages".
std::string page_message(const Resident& before, const Resident& after);

}  // namespace espalier::bench
