// SPDX-License-Identifier: Apache-2.0
// `espalier-bench hash`: gets and puts of pairs of 64 bytes, by one client, beside peers
// [RAMBDA §VI-B, Figs. 8 to 10].
//
//   peak     uniform and zipfian keys, gets alone and half puts, batches of 32
//   latency  the same of zipfian keys in batches of 1 and 32, with a clock around each batch
//   batches  gets of zipfian keys in batches of 1 to 64
//   growth   puts into an empty map: the longest one, and memory for a pair meanwhile
//   lines    lines of memory that a get and a put touch
//   signals  completions and doorbells for an answer, by how many of them are signalled
//
// Peak also has no-ops through the same rings; the rate of gets there is reported as a share of
// theirs. Before each round of the first three the rate of random cache lines is measured, and
// every rate is reported as a share of it.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/hash_target.hpp"
#include "bench/point_options.hpp"

namespace espalier::bench {

struct HashBenchOptions : PointOptions {
  static constexpr const char* kBench = "hash";
  static constexpr const char* kSummary = "hash maps, beside peers";

  /// Empty: all available ones.
  std::vector<HashTargetKind> targets;
  std::vector<std::uint32_t> batches{1, 2, 4, 8, 16, 32, 64};
  std::uint64_t pairs = 2'000'000;
  std::uint64_t ops = 1'000'000;    ///< of a measurement
  bool versions = true;             ///< of Espalier's maps
  std::uint32_t cache_percent = 7;  ///< of its pairs in a device's cache
  double probe_seconds = 0.05;      ///< for each try at the rate of random lines

  void declare(OptionRows& rows);
  /// A named target that cannot run makes the benchmark fail; the others are measured all the same.
  [[nodiscard]] std::vector<ExperimentRow> experiment_rows() const;
};

}  // namespace espalier::bench
