// SPDX-License-Identifier: Apache-2.0
// The threads of the measured part: pinned, started together, stopped at a deadline.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/answers.hpp"
#include "bench/request_list.hpp"
#include "bench/target.hpp"

namespace espalier::bench {

struct WorkPlan {
  std::uint64_t certain_items = ~std::uint64_t{0};  ///< see Answers
  bool fixed_values = true;                         ///< likewise
  double seconds_max = 0;       ///< for each of the two parts; 0: no limit, as with a pace
  bool tail = true;             ///< run what lies behind the measured part
  std::uint32_t in_flight = 0;  ///< on each thread; 0: as the target was made for
  bool clocked = false;         ///< the measured part has a clock around each request, too
  /// Requests that are due in a second, on all threads together, at random times; latencies of the
  /// measured part count from there. 0: the next one begins when one has ended.
  double per_second = 0;
  std::uint64_t seed = 1;  ///< of those times
};

struct WorkResult {
  std::uint64_t ops = 0;
  double seconds = 0;               ///< from the first thread's start to the last one's end
  std::uint64_t scanned_items = 0;  ///< in the measured part
  bool complete = true;
  Answers answers;  ///< of both parts
  Latencies latencies;

  /// Adds all but the time, which only who ran both can tell.
  void add(const WorkResult& other);
};

/// When so many requests are due, in nanoseconds from the first moment on, rising: as from many who
/// know nothing of each other, `per_second` on average. Requires: per_second > 0.
std::vector<std::uint64_t> arrivals(std::uint64_t count, double per_second, std::uint64_t seed);

/// Runs each list on a thread and a session of its own: its first measured[t] requests as the plan
/// says, by default at full speed; then the others with a clock around each.
/// Errors: rethrows what a thread threw.
WorkResult run_workers(Target& target, std::span<const RequestList> lists,
                       std::span<const std::uint64_t> measured, const WorkPlan& plan);

/// The same lists one after the other on one thread; `seconds` is the sum.
WorkResult run_on_one_thread(Target& target, std::span<const RequestList> lists,
                             std::span<const std::uint64_t> measured, const WorkPlan& plan);

}  // namespace espalier::bench
