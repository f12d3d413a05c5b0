// SPDX-License-Identifier: Apache-2.0
// What the commands on tables share: the way to a node's tables, and what its refusals say.
#pragma once

#include <optional>
#include <string>

#include "espalier/table.hpp"
#include "tools/environment.hpp"

namespace espalier::tools {

/// A connection to a node with tables.
struct TablePlace {
  std::string address;
  Store store;
};

/// Connects to the node that --at or ESPALIER_AT names.
[[nodiscard]] Outcome<TablePlace> open_tables(const Environment& environment,
                                              const std::optional<std::string>& at,
                                              Access access = Access::rpc);
[[nodiscard]] Outcome<Table> open_table(const TablePlace& place, const std::string& name);
/// A call to a node has failed: what could not be done, and why.
[[nodiscard]] std::unexpected<Failure> refused(const std::string& what, const TableError& error);

}  // namespace espalier::tools
