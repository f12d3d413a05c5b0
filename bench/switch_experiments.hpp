// SPDX-License-Identifier: Apache-2.0
// The experiments of `espalier-bench switch` (run_switch.hpp), each by itself. Each prints its
// lines, and says how many measurements there were.
//
// Thread: one at a time; some start threads of their own.
#pragma once

#include <cstdint>

#include "bench/output.hpp"
#include "bench/run_switch.hpp"

namespace espalier::bench {

struct SwitchOutcome {
  std::uint64_t measurements = 0;
  bool right = true;  ///< no frame was lost or led astray
};

// Requires: options that problem_of() accepts. Errors: throw std::runtime_error or std::bad_alloc.
SwitchOutcome run_switch_gets(const SwitchRunOptions& options, const Output& output);
SwitchOutcome run_switch_parts(const SwitchRunOptions& options, const Output& output);
SwitchOutcome run_switch_hints(const SwitchRunOptions& options, const Output& output);
SwitchOutcome run_switch_hops(const SwitchRunOptions& options, const Output& output);
SwitchOutcome run_switch_fat_tree(const SwitchRunOptions& options, const Output& output);
SwitchOutcome run_switch_function(const SwitchRunOptions& options, const Output& output);
SwitchOutcome run_switch_forward(const SwitchRunOptions& options, const Output& output);
SwitchOutcome run_switch_install(const SwitchRunOptions& options, const Output& output);

}  // namespace espalier::bench
