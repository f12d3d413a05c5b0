// SPDX-License-Identifier: Apache-2.0
// What `ycsb` and `tree` print of a run.
#pragma once

#include <vector>

#include "bench/report.hpp"
#include "bench/runner.hpp"
#include "bench/ycsb_options.hpp"

namespace espalier::bench {

/// Its line, with the keys of docs/experiments.md, which keep their meaning over releases.
Json to_json(const RunResult& result, const YcsbOptions& options, const RequestPlan& plan,
             const KeySet& keys);

/// The table of such lines.
std::vector<Column> run_columns();

}  // namespace espalier::bench
