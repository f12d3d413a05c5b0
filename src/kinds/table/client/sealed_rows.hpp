// SPDX-License-Identifier: Apache-2.0
// Rows encrypted for the slots that were reserved for them.
//
// Thread: any; no state.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "kinds/table/ctr_cipher.hpp"

namespace espalier::client {

/// Encrypts rows in place. `slots`: wire::ReservedSlots, one behind the other, of any bytes.
/// Returns false if they are not slots of a table with such rows, one for each row; then the rows
/// are anything.
[[nodiscard]] bool seal_rows(std::span<std::byte> rows, std::size_t row_bytes,
                             std::string_view slots, table::CtrCipher& cipher);

}  // namespace espalier::client
