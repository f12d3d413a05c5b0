// SPDX-License-Identifier: Apache-2.0
// A simulated world in which clients take numbers of one sequencer, some by FETCH_ADD on its word,
// some by calls to its node, while another client seals its epochs and begins new ones. All numbers
// taken go into one history, with the world's own order of time, which is then checked.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <string>

#include "fabric/sim/faults.hpp"

namespace espalier::test {

/// Counts of rare events, in one or more worlds.
struct SequencerCounts {
  std::uint64_t added = 0;           // ranges, by FETCH_ADD
  std::uint64_t asked = 0;           // ranges, by calls
  std::uint64_t refused_sealed = 0;  // words that adds returned
  std::uint64_t refused_asking = 0;
  std::uint64_t told_after_seal = 0;  // adds before a seal, returned after its acknowledgement
  std::uint64_t epochs = 0;
  std::uint64_t pairs_lost = 0;
};

/// Runs the simulation. Returns what is wrong; empty: nothing.
[[nodiscard]] std::string run_sequencer_world(std::uint64_t seed, fabric::sim::Faults faults,
                                              SequencerCounts& counts);

}  // namespace espalier::test
