// SPDX-License-Identifier: Apache-2.0
// espalier check --data: the data folder of a node that does not run (node/data_check.hpp).
#pragma once

#include <cstdint>
#include <string>

#include "node/data_reader.hpp"
#include "tools/environment.hpp"

namespace espalier::tools {

/// Reads the folder's log, makes its objects again in memory of `memory_bytes_max` (0: as a node
/// by default), audits them, and prints what is there. Returns kFailed where something is wrong
/// with objects; fails where the folder cannot be read, or is damaged, once what comes before the
/// damage is printed.
[[nodiscard]] Outcome<int> check_data_folder(Environment& environment, const std::string& path,
                                             std::uint64_t memory_bytes_max, bool json);

/// A mistake of a data folder as a command's failure.
[[nodiscard]] std::unexpected<Failure> data_failed(const node::DataMistake& mistake);

}  // namespace espalier::tools
