// SPDX-License-Identifier: Apache-2.0
// The difference of two tables of a map: if only addresses differ, a switch needs no more.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/index_tables.hpp"
#include "dataplane/installed_function.hpp"

namespace espalier::dataplane {

/// The entries that name another address in `to` than in `from`; nothing: the tables differ in more
/// than addresses. `of`: whose tables. Cost: linear.
[[nodiscard]] std::optional<std::vector<EntryChange>> changes_between(const IndexTables& from,
                                                                      const IndexTables& to,
                                                                      const TablesName& of);

}  // namespace espalier::dataplane
