// SPDX-License-Identifier: Apache-2.0
// The experiments of `espalier-bench switch` (run_switch.hpp), one function each.
//
// Thread: one at a time; some start threads of their own.
#pragma once

#include "bench/report.hpp"
#include "bench/run_switch.hpp"

namespace espalier::bench {

// Requires: options without a problem. Errors: throw std::runtime_error or std::bad_alloc.
void run_switch_gets(const SwitchRunOptions& options, Report& report);
void run_switch_parts(const SwitchRunOptions& options, Report& report);
void run_switch_hints(const SwitchRunOptions& options, Report& report);
void run_switch_hops(const SwitchRunOptions& options, Report& report);
void run_switch_fat_tree(const SwitchRunOptions& options, Report& report);
void run_switch_function(const SwitchRunOptions& options, Report& report);
void run_switch_forward(const SwitchRunOptions& options, Report& report);
void run_switch_install(const SwitchRunOptions& options, Report& report);

/// The common fields of lines about frames that went through tables of these options.
[[nodiscard]] Json line_of_frames(const SwitchRunOptions& options, const char* target,
                                  const char* workload);

/// The reason of failure if frames were lost or misdirected.
inline constexpr const char* kFramesAreWrong =
    "the switch lost frames, or led some astray: see dropped and misrouted of the lines";

}  // namespace espalier::bench
