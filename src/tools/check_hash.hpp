// SPDX-License-Identifier: Apache-2.0
// What `espalier check` does with a hash map: the check (hash_check.hpp), and what it prints.
#pragma once

#include <cstdint>
#include <string>

#include "tools/environment.hpp"
#include "tools/loader.hpp"

namespace espalier::tools {

/// Checks a hash map of a node while others use it. Returns whether no fault was found.
/// Fails if the node does.
[[nodiscard]] Outcome<bool> check_served_hash(Environment& environment, const HashMap& map,
                                              bool json);
/// Checks one that was filled from files, its structure too. Returns the command's exit code.
[[nodiscard]] Outcome<int> check_loaded_hash(Environment& environment, const HashDataset& data,
                                             bool json);

}  // namespace espalier::tools
