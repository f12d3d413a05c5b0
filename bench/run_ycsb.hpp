// SPDX-License-Identifier: Apache-2.0
// `espalier-bench ycsb`: one workload on one or several targets, in turns.
#pragma once

#include "bench/output.hpp"
#include "bench/ycsb_options.hpp"

namespace espalier::bench {

/// Runs every target `repeats` times, taking turns, so that a change of the machine meets them all.
/// Prints one line for each run and at last one in total: medians, and ratios to absl if it is one
/// of the targets. Returns what main should: 0, or 1 if the answers of targets differ.
/// Errors: throws std::runtime_error with a sentence for the user.
int run_ycsb(const YcsbOptions& options, const Output& output);

}  // namespace espalier::bench
