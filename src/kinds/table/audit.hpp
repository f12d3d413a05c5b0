// SPDX-License-Identifier: Apache-2.0
// Checks a whole table: consistency of header, page list, pages and rows.
//
// Requires: no thread appends meanwhile.
// Thread: any.
#pragma once

#include <string>
#include <vector>

#include "kinds/table/table.hpp"

namespace espalier::table {

/// Returns violations, a sentence each, the first 20; empty if all is well. Rows of an encrypted
/// table are not checked, because the node cannot read them. Cost: reads all rows.
[[nodiscard]] std::vector<std::string> audit(const Table& table);

}  // namespace espalier::table
