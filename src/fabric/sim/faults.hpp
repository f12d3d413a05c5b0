// SPDX-License-Identifier: Apache-2.0
// Fault injection of a simulated fabric: what goes wrong, and how often.
//
// All faults are within the guarantees of a reliable connection (Properties in types.hpp): a
// program that is correct on it relies on no order, speed or atomicity of READs and WRITEs that
// hardware does not guarantee either.
//
// Thread: plain values.
#pragma once

#include <cstdint>

#include "base/random.hpp"

namespace espalier::fabric::sim {

/// From `low` to `high`, both included, each equally likely.
struct Range {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  [[nodiscard]] std::uint64_t draw(base::Random& random) const { return random.between(low, high); }
};

/// What a World draws from its seed. By default nothing is lost and nothing torn, but time passes,
/// and READs overtake each other as their messages do.
struct Faults {
  /// From post() to the moment at which the bytes to be sent are read.
  Range start_ns{0, 300};
  /// What a message takes, one way; each its own time, so that messages overtake each other.
  Range delay_ns{500, 2'000};
  /// Such a message takes `late_ns` instead. More than a pair's timeout makes it a duplicate.
  double late = 0;
  Range late_ns{100'000, 8'000'000};
  double loss = 0;
  double duplication = 0;

  /// A READ or WRITE of more than one line is torn: each line is copied at a moment of its own, in
  /// any order, over a time of `tear_ns`.
  double tear = 0;
  Range tear_ns{200, 4'000};
  /// A READ waits at the target before it reads, so that later ones of its pair pass it.
  double hold_read = 0;
  Range hold_read_ns{500, 20'000};
  /// READs keep their order, and are never done twice: for code that asks a transport for that.
  /// Fixed when an endpoint is made.
  bool reads_in_order = false;
  /// From the load to the store of an atomic; only other atomics of peers cannot come between.
  /// Whether that is ever more than 0 is fixed when an endpoint is made.
  Range split_atomic_ns{0, 0};

  /// From taking a receive to its completion.
  Range land_ns{0, 500};
  /// Between two tries of what finds no receive.
  Range no_receive_ns{5'000, 40'000};
  /// Each message that a paused node does not take is lost, instead of waiting.
  double pause_loss = 0;
  /// Each thing that a crashed node had sent, and that has not been done wholly, is left undone.
  double crash_loss = 0.5;
  /// Each line of a persistent region that was stored through the cache, or is not fenced yet, is
  /// as it was before, once its node has crashed.
  double cache_loss = 0.5;
  /// The duration of a call of Endpoint::progress(), so that time passes for a program that only
  /// polls.
  std::uint64_t progress_ns = 100;

  /// All of them, often.
  static Faults harsh();
};

/// How often rare events occurred: a test that relies on one checks its count.
struct Counts {
  std::uint64_t messages = 0;
  std::uint64_t lost = 0;
  std::uint64_t cut_off = 0;  // sent over a link that is cut
  std::uint64_t duplicated = 0;
  std::uint64_t late = 0;
  std::uint64_t sent_again = 0;          // requests retransmitted, for want of an answer
  std::uint64_t duplicates_refused = 0;  // WRITEs, SENDs and atomics that had been done already
  std::uint64_t reads_again = 0;         // READs that were done more than once
  std::uint64_t reads_reordered = 0;     // that were done while an earlier one was not
  std::uint64_t torn_reads = 0;          // that saw some lines before a change, and some after
  std::uint64_t torn_writes = 0;         // between whose lines something else happened
  std::uint64_t torn_atomics = 0;        // whose word changed between load and store
  std::uint64_t receiver_not_ready = 0;
  std::uint64_t no_receive = 0;
  std::uint64_t retry_exceeded = 0;
  std::uint64_t refused = 0;  // requests that a target would not do
  std::uint64_t revoked = 0;  // of these, those that had begun
  std::uint64_t crashes = 0;
  std::uint64_t left_undone = 0;  // what a crashed node had sent
  std::uint64_t lines_lost = 0;   // of persistent regions, with a node's cache
  std::uint64_t held = 0;         // events of paused nodes
};

}  // namespace espalier::fabric::sim
