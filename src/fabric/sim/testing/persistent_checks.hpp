// SPDX-License-Identifier: Apache-2.0
// A node with persistent memory crashes while a peer writes into it, as a check that says what was
// lost: tests run it, and those with planted bugs want it to find something.
//
// Thread: one.
#pragma once

#include <string>
#include <vector>

#include "fabric/sim/testing/two_ends.hpp"

namespace espalier::fabric::sim {

struct PersistentRun {
  std::string lost;              ///< of what was acknowledged; empty: nothing
  std::uint64_t lines_lost = 0;  ///< of all
  std::uint64_t acknowledged = 0;
  bool partly = false;  ///< some lines of a WRITE that was not acknowledged are there, some not
};

/// WRITEs of 8 lines, each to a place of its own, two at a time, until the node crashes.
inline PersistentRun crash_under_writes(std::uint64_t seed, PlacementPolicy policy) {
  constexpr std::uint64_t kWrites = 64;
  TwoEnds ends(seed, Faults::harsh());
  ends.b_endpoint->regions().set_placement_policy(policy);
  std::vector<Words> memory(kWrites);
  OfferedMemory offered{reinterpret_cast<std::byte*>(memory.data()), kWrites * sizeof(Words)};
  offered.kind = MemoryKind::persistent;
  const Registration region = *ends.b_endpoint->regions().offer(offered, RemoteRights::write);
  PersistentRun run;
  if (!ends.connect()) return run;
  std::vector<Words> out(kWrites);
  bool crashed = false;
  ends.world.after(ends.world.random().between(10'000, 400'000), [&] {
    ends.world.crash("b");
    crashed = true;
  });
  std::uint64_t posted = 0;
  while (!crashed && posted < kWrites) {
    out[posted].fill(seed * kWrites + posted + 1);
    ends.a.pair->post(WorkRequest::write(posted, std::as_bytes(std::span(out[posted])),
                                         region.remote().key,
                                         region.remote().at(posted * sizeof(Words))));
    ++posted;
    const auto is_next = [&] { return crashed || ends.a.completions.size() + 2 > posted; };
    if (!ends.a.wait_until(ends.world, is_next)) break;
  }
  if (!crashed) ends.world.crash("b");
  ends.a.wait_completed(ends.world, posted);
  for (const Completion& ended : ends.a.completions) {
    const Words& there = memory[ended.work_id];
    if (ended.status == Status::success) {
      ++run.acknowledged;
      if (there != out[ended.work_id]) run.lost = "of WRITE " + std::to_string(ended.work_id);
    } else if (there != Words{} && there != out[ended.work_id]) {
      run.partly = true;
    }
  }
  run.lines_lost = ends.world.counts().lines_lost;
  return run;
}

}  // namespace espalier::fabric::sim
