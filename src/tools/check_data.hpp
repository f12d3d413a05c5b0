// SPDX-License-Identifier: Apache-2.0
// espalier check --data: checks the data folder of a stopped node (node/data_check.hpp).
#pragma once

#include <cstdint>
#include <string>

#include "node/data_reader.hpp"
#include "tools/environment.hpp"

namespace espalier::tools {

/// Reads the folder's log, rebuilds its objects in memory of `memory_bytes_max` (0: the default of
/// nodes), audits them, and prints what is there. Returns kFailed if objects have faults. Fails if
/// the folder cannot be read, or is damaged, after printing the part before the damage.
[[nodiscard]] Outcome<int> check_data_folder(Environment& environment, const std::string& path,
                                             std::uint64_t memory_bytes_max, bool json);

/// A mistake of a data folder as a command's failure.
[[nodiscard]] std::unexpected<Failure> data_failed(const node::DataMistake& mistake);

}  // namespace espalier::tools
