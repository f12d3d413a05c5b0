// SPDX-License-Identifier: Apache-2.0
// The check of a whole table: what its header, page list, pages and rows say of each other.
//
// Requires: nobody appends meanwhile.
// Thread: any.
#pragma once

#include <string>
#include <vector>

#include "kinds/table/table.hpp"

namespace espalier::table {

/// What is wrong, a sentence each, the first 20; nothing: all is well. Rows of an encrypted table
/// are not looked at, for nobody here can read them. Cost: reads all rows.
[[nodiscard]] std::vector<std::string> audit(const Table& table);

}  // namespace espalier::table
