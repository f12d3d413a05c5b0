// SPDX-License-Identifier: Apache-2.0
// A log over a disk that crashes and lies, in one thread from a seed: what is acknowledged must be
// there after each recovery, in order, and nothing that was not appended.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <string>

#include "log/testing/faulty_folder.hpp"

namespace espalier::log {

struct WorldTerms {
  DiskFaults faults;        // while it is written to; recovery meets crashes alone
  bool power = true;        // losses of power beside killed processes
  bool flips = false;       // bits, between two lives
  bool alike = false;       // each record takes a block of its own, and all are of one size
  unsigned writes_max = 1;  // that are under way, and come back in any order
  unsigned lives = 12;      // how often the log is opened
  unsigned steps_max = 60;  // in a life
};

struct WorldResult {
  std::string wrong;  // what must not be; empty: nothing
  // What seldom happens:
  std::uint64_t records = 0;
  std::uint64_t kills = 0;  // of the process alone
  std::uint64_t power_losses = 0;
  std::uint64_t cuts = 0;
  std::uint64_t recovery_crashes = 0;
  std::uint64_t segments_removed = 0;
  std::uint64_t failures = 0;   // of a log that then acknowledged nothing more
  std::uint64_t overtaken = 0;  // writes that came back before one that began before
  std::uint64_t torn = 0;       // crashes while several writes were under way
  std::uint64_t damages = 0;    // that were found, in worlds that have them
};

/// Lives through a world of this seed, until something is wrong.
[[nodiscard]] WorldResult run_world(std::uint64_t seed, const WorldTerms& terms);

}  // namespace espalier::log
