// SPDX-License-Identifier: Apache-2.0
// `espalier check` for a hash map: runs the check (hash_check.hpp) and prints the result.
#pragma once

#include <cstdint>
#include <string>

#include "tools/environment.hpp"
#include "tools/loader.hpp"

namespace espalier::tools {

/// Checks a hash map of a node while clients use it. Returns whether no fault was found.
/// Fails if the node does.
[[nodiscard]] Outcome<bool> check_served_hash(Environment& environment, const HashMap& map,
                                              bool json);
/// Checks one filled from files, including its structure. Returns the command's exit code.
[[nodiscard]] Outcome<int> check_loaded_hash(Environment& environment, const HashDataset& data,
                                             bool json);

}  // namespace espalier::tools
