// SPDX-License-Identifier: Apache-2.0
// A chain of members in one thread, from a seed: their disks, the network between them, and the
// membership, all of which are late, lose and repeat. Members crash and come again, stand still and
// go on, and are cut off, one way too. Who was left out is added again, begins with some of the
// tail's records, which stand for its checkpoint, and gets the others. Clients append to whoever
// says that it serves, and read there.
//
// A log of numbers is all that there is to see, so linearizability is easy to tell: what anybody
// was shown, and what was acknowledged, is one sequence that grows, and nobody sees less of it than
// was shown before he asked.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace espalier::chain {

struct WorldTerms {
  std::size_t members = 3;
  std::uint64_t fences = 60;  ///< how long it lives, in T; then all heal
  double crash = 0.004;       ///< of a member, each sixteenth of T
  double pause = 0.004;
  double cut = 0.004;
  double full = 0.01;
  double lose = 0.02;   ///< of each message
  double late = 0.02;   ///< by up to 3 T
  double slow = 0.1;    ///< of each answer of the membership, up to 2 T
  double deaf = 0.004;  ///< hears nothing of the membership for up to 6 T; what it offers is taken
  bool rejoin = true;   ///< who was left out is added again, and in the end all are there
};

struct WorldResult {
  std::string wrong;  ///< what a client or a member had that may not be; empty: nothing
  std::uint64_t acknowledged = 0;
  std::uint64_t reads = 0;
  std::uint64_t epochs = 0;
  std::uint64_t crashes = 0;
  std::uint64_t joined = 0;  ///< members that came in behind the others
};

/// Runs such a world to its end, or until something is wrong.
[[nodiscard]] WorldResult run_world(std::uint64_t seed, const WorldTerms& terms = {});

}  // namespace espalier::chain
