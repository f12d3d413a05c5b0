// SPDX-License-Identifier: Apache-2.0
// Simulation of a chain of members in one thread, from a seed: their disks, the network between
// them, and the membership service; each of these delays, loses and duplicates. Members crash and
// restart, pause, and are partitioned, in one direction too. A removed member rejoins: it begins
// with some of the tail's records, in place of a checkpoint, and receives the others. Clients
// append to any member that serves, and read there.
//
// The only state is a log of numbers, which makes linearizability easy to check: all that clients
// read, and all that was acknowledged, is one growing sequence, and no read returns less than an
// earlier read or acknowledgement that ended before it began.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace espalier::chain {

struct WorldTerms {
  std::size_t members = 3;
  std::uint64_t fences = 60;  ///< duration, in T; then all faults end
  double crash = 0.004;       ///< probability for a member, each sixteenth of T
  double pause = 0.004;
  double cut = 0.004;
  double full = 0.01;
  double lose = 0.02;   ///< of each message
  double late = 0.02;   ///< by up to 3 T
  double slow = 0.1;    ///< of each answer of the membership service, up to 2 T
  double deaf = 0.004;  ///< gets no views for up to 6 T, while its proposals get through
  bool rejoin = true;   ///< removed members rejoin, and in the end all are members
};

struct WorldResult {
  std::string wrong;  ///< a violation at a client or a member; empty: none
  std::uint64_t acknowledged = 0;
  std::uint64_t reads = 0;
  std::uint64_t epochs = 0;
  std::uint64_t crashes = 0;
  std::uint64_t joined = 0;  ///< members that rejoined
};

/// Runs such a world to its end, or until a check fails.
[[nodiscard]] WorldResult run_world(std::uint64_t seed, const WorldTerms& terms = {});

}  // namespace espalier::chain
