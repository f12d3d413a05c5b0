// SPDX-License-Identifier: Apache-2.0
// Runs pipelines by batches and by the reference, and holds one against the other.
#pragma once

#include <cstddef>
#include <string>

#include "base/random.hpp"
#include "kinds/table/pipeline.hpp"
#include "kinds/table/testing/memory_rows.hpp"

namespace espalier::table {

/// What happened in many runs, so that a test sees that it saw it.
struct SeenInRuns {
  int errors = 0;
  int stalls = 0;
  int flushes = 0;
  int unsure = 0;
  int groups = 0;
  int rows = 0;
  int smart = 0;
  int scalar = 0;  // by plain C++
  int avx512 = 0;
  int direct = 0;  // rows that went to their groups as they are
};

/// Runs a pipeline both ways; the batches by steps and rooms of any size, their rows merged. Sums
/// of reals of partial groups may differ by their rounding, everything else by no bit.
/// Returns: what differs, for people; empty if nothing does.
[[nodiscard]] std::string difference_of_runs(base::Random& random, const MemoryRows& rows,
                                             Pipeline pipeline, std::size_t group_bytes,
                                             SeenInRuns& seen);

/// The same for so many rounds of pipelines and rows by chance, with few keys and all the memory,
/// or with many keys and as little as there may be.
[[nodiscard]] std::string difference_in_rounds(base::Random& random, int rounds, SeenInRuns& seen,
                                               RegexCompiler* regexes = nullptr);
/// Rows of 64 bytes of which all columns are wanted, and filters by ranges.
[[nodiscard]] std::string difference_in_whole_rows(base::Random& random, int rounds,
                                                   SeenInRuns& seen);
/// Groups and distinct rows by one key whose values lie near each other, mostly.
[[nodiscard]] std::string difference_in_near_keys(base::Random& random, int rounds,
                                                  SeenInRuns& seen);
[[nodiscard]] std::string difference_in_little_memory(base::Random& random, int rounds,
                                                      SeenInRuns& seen);

}  // namespace espalier::table
