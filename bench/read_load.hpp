// SPDX-License-Identifier: Apache-2.0
// Reads of a map that the benchmark has filled, by pipelines of so many threads: gets of random
// keys, and scans of a few items from such keys. Every answer is checked.
#pragma once

#include <cstdint>
#include <string>

#include "base/histogram.hpp"
#include "bench/turn_costs.hpp"
#include "espalier/map.hpp"

namespace espalier::bench {

class OptionRows;

struct ReadLoad {
  std::uint64_t keys = 100'000;
  std::uint64_t value_bytes = 16;
  std::uint64_t ops = 100'000;     ///< of each thread
  std::uint64_t scan_percent = 0;  ///< of them are scans,
  std::uint64_t scan_items = 50;   ///< of so many items
  std::uint32_t threads = 1;
  std::uint32_t in_flight = 32;  ///< of each thread
  /// The pipeline's cache is empty at the start. Before its clock runs each thread gets one key of
  /// so many in a row, from the first to the last; 0: none.
  std::uint64_t warm_stride = 0;
  std::uint64_t seed = 1;

  void declare(OptionRows& rows);
};

/// A stride that skips no leaf in nodes of this size.
[[nodiscard]] constexpr std::uint64_t stride_of_leaves(std::uint64_t node_bytes) {
  return node_bytes / 128;
}

/// The key of this number.
[[nodiscard]] std::string read_key(std::uint64_t number);

/// Gets the keys of every `stride`-th number below `keys`, in order; 0: none.
void get_each(Pipeline& pipeline, std::uint64_t keys, std::uint64_t stride, Handler& handler);

/// Puts all keys. Errors: throws std::runtime_error.
void fill(const Map& map, const ReadLoad& load);

/// Reads so many times, and returns requests a second by the slowest thread's clock. Each `round`
/// has other keys. No clock runs before all threads have got the keys of warm_stride. Errors:
/// throws std::runtime_error, also if an answer is wrong.
double read(const Map& map, const ReadLoad& load, std::uint64_t round);

/// Nanoseconds of random gets one at a time: at most 4096 of them, after the keys of warm_stride.
/// Errors: as read().
base::Histogram latencies_of_gets(const Map& map, const ReadLoad& load, std::uint64_t round);

/// Reads on this thread, in turns with the answering threads, as many at a time as are in flight:
/// enough to measure costs, and no more than a thread of the load does. Returns how many. Errors:
/// as read().
std::uint64_t read_by_turns(const Map& map, const ReadLoad& load, std::uint64_t round,
                            ClientTurns& turns);

}  // namespace espalier::bench
