// SPDX-License-Identifier: Apache-2.0
// Why rows were not appended, in words for people.
#pragma once

#include <string>

#include "table/table.hpp"

namespace espalier::offload {

/// The first ten wrong rows; nothing if it was not for wrong rows.
[[nodiscard]] std::string words_of(const table::AppendError& error, const table::Schema& schema);

}  // namespace espalier::offload
