// SPDX-License-Identifier: Apache-2.0
// Several threads use one map concurrently in every way, and its history is checked.
//
// Its stress: few keys in small nodes, so that leaves split, merge and swap all the time; phases
// that grow and shrink the tree; scans, batches and snapshots that span leaves; threads that read
// what they just wrote; more threads than cores, so that one is sometimes preempted in the middle
// of a write; values out of line as well as inline, each written once.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "espalier/map.hpp"
#include "tests/support/history.hpp"
#include "tests/support/key_set.hpp"
#include "tests/support/recorder.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {

struct WorkloadOptions {
  std::uint64_t seed = 1;
  KeyPattern pattern = KeyPattern::dense;
  std::size_t keys = 48;
  std::uint32_t threads = 4;        ///< that make synchronous calls
  std::uint32_t pipelines = 1;      ///< more threads, each with a Pipeline
  std::uint32_t in_flight = 16;     ///< of a Pipeline
  std::uint64_t operations = 2000;  ///< of each thread in each round
  std::uint64_t operations_per_phase = 250;
  std::uint32_t rounds = 1;            ///< histories, each checked alone; the map stays
  std::uint32_t value_bytes_max = 80;  ///< at least 12
  bool ranges = true;                  ///< scans, floors, counts
  bool batches = true;
  bool modifies = true;
  bool snapshots = true;
  bool replay = true;   ///< where the map gives versions: those of one node are in one order
  bool search = false;  ///< look for a linearization too, versions aside
  std::uint64_t search_steps_max = 200'000;
  bool audit = true;                ///< after each round
  std::function<void()> on_thread;  ///< called first by each thread; may be empty
};

/// What a workload did, added up over its rounds.
struct WorkloadReport {
  std::uint64_t histories = 0;
  std::uint64_t operations = 0;
  std::uint64_t overlapping = 0;  ///< operations that began during one of another thread
  std::uint64_t refused = 0;      ///< operations that were refused with an error
  std::uint64_t searched = 0;     ///< histories in which a linearization was found
  std::uint64_t unknown = 0;      ///< histories in which the search gave up
};

/// Checks one history by the options, and adds it to the report. `versions`: whether the map has
/// them. Returns what is wrong. Does not audit.
[[nodiscard]] std::optional<std::string> check_history(const History& history,
                                                       const WorkloadOptions& options,
                                                       bool versions, WorkloadReport& report);

/// Runs the threads of one round in one process: each has one of the recorders and a seed of its
/// own, and they begin together once `arrive_and_wait` has returned for each. Values begin with
/// `value_prefix` and the thread's number. Requires: as many recorders as threads and pipelines.
void run_threads(const WorkloadOptions& options, const std::vector<std::string>& keys,
                 std::span<Recorder> recorders, Random& random, const std::string& value_prefix,
                 const std::function<void()>& arrive_and_wait);

/// Runs the workload and checks every history: with versions by replaying them, with `search` by a
/// search as well. Without versions there are no scans, snapshots and replays. Returns what is
/// wrong. Requires: nothing else uses the map.
[[nodiscard]] std::optional<std::string> run_and_check(Map map, WorkloadOptions options,
                                                       WorkloadReport* report = nullptr);

}  // namespace espalier::test
