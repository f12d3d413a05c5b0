// SPDX-License-Identifier: Apache-2.0
// A log over a disk that crashes and lies, in one thread from a seed. Acknowledged records must be
// there after each recovery, in order, and nothing that was not appended.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <string>

#include "log/testing/faulty_folder.hpp"

namespace espalier::log {

struct WorldTerms {
  DiskFaults faults;        // during writes; recovery only meets crashes
  bool power = true;        // also losses of power, not only killed processes
  bool flips = false;       // of bits, between two lives
  bool alike = false;       // each record has a block of its own, and all have one size
  unsigned writes_max = 1;  // under way at a time, completed in any order
  unsigned lives = 12;      // how often the log is opened
  unsigned steps_max = 60;  // in a life
};

struct WorldResult {
  std::string wrong;  // the violation; empty: none
  // Counts of rare events:
  std::uint64_t records = 0;
  std::uint64_t kills = 0;  // of the process alone
  std::uint64_t power_losses = 0;
  std::uint64_t cuts = 0;
  std::uint64_t recovery_crashes = 0;
  std::uint64_t segments_removed = 0;
  std::uint64_t failures = 0;   // of the log
  std::uint64_t overtaken = 0;  // writes completed before an older one
  std::uint64_t torn = 0;       // crashes with several writes under way
  std::uint64_t damages = 0;    // detected, in worlds that have them
};

/// Runs a world of this seed, until a violation.
[[nodiscard]] WorldResult run_world(std::uint64_t seed, const WorldTerms& terms);

}  // namespace espalier::log
