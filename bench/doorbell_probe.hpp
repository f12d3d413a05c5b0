// SPDX-License-Identifier: Apache-2.0
// The measurements of `espalier-bench rings --experiment doorbell`, one function each.
//
// Each runs threads of its own: the reader on the first core, writers on the next ones, sharing
// cores where there are too few; then waiting threads yield. Each is bounded: by its number of
// operations, and by `seconds_max` wherever a thread waits for another. Checksums depend on what
// was published and not on how it was announced, so that forms can be compared.
#pragma once

#include <cstdint>

#include "base/histogram.hpp"
#include "bench/doorbell_forms.hpp"

namespace espalier::bench {

struct DoorbellPlan {
  DoorbellForm form;
  std::uint32_t rings = 1;
  std::uint32_t writers = 1;
  std::uint32_t window = 1;  ///< slots that a writer publishes before it waits for an answer
  std::uint64_t ops = 0;     ///< of all writers together
  std::uint64_t seed = 1;
  double seconds_max = 2;
};

struct DoorbellResult {
  std::uint64_t ops = 0;
  double seconds = 0;
  base::Histogram latencies;  ///< empty where none are taken
  std::uint64_t checksum = 0;
  bool complete = true;  ///< else time was up

  [[nodiscard]] double ns_per_op() const;
  [[nodiscard]] double ops_per_s() const;
};

/// The reader scans rings without news; an operation is one scan of all of them. Afterwards each
/// ring gets one slot and the same reader takes them all, which is what the checksum shows.
DoorbellResult scan_empty(const DoorbellPlan& plan);

/// One writer publishes in random rings, at most `window` slots ahead of the reader, which counts
/// on one line what it has taken. With a window of 1 latencies are the round trips.
DoorbellResult notify(const DoorbellPlan& plan);

/// Writers publish as fast as the reader takes, writer w in ring w, so that tails less than a line
/// apart share it. At most kRingSlots ahead of the reader, which tells each on a line of its own.
/// Requires: writers <= rings.
DoorbellResult stream(const DoorbellPlan& plan);

/// Writers announce, writer w in ring w, and nobody reads: the writers' side of a shared line.
/// With `slots`, each announcement is preceded by its slot. Requires: writers <= rings.
DoorbellResult announce_unread(const DoorbellPlan& plan, bool slots);

}  // namespace espalier::bench
