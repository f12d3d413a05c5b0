// SPDX-License-Identifier: Apache-2.0
// Shared code of the commands on tables: access to a node's tables, and messages for its refusals.
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
/// A failed call to a node: the action and the reason.
[[nodiscard]] std::unexpected<Failure> refused(const std::string& what, const TableError& error);

}  // namespace espalier::tools
