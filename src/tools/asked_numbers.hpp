// SPDX-License-Identifier: Apache-2.0
// The numbers of a node, asked of it.
//
// Thread: any.
#pragma once

#include <optional>
#include <string>

#include "espalier/map.hpp"
#include "node/numbers_format.hpp"
#include "tools/environment.hpp"

namespace espalier::tools {

/// Nothing where the node does not tell them to this client: it is older than this command, or the
/// client may not see them.
[[nodiscard]] Outcome<std::optional<node::NodeNumbers>> numbers_of(const Store& store,
                                                                   const std::string& address);
/// The same, but fails there too.
[[nodiscard]] Outcome<node::NodeNumbers> needed_numbers_of(const Store& store,
                                                           const std::string& address);

}  // namespace espalier::tools
