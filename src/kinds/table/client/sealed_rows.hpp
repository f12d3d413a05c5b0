// SPDX-License-Identifier: Apache-2.0
// Encrypts rows for the slots reserved for them.
//
// Thread: any; no state.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "kinds/table/ctr_cipher.hpp"

namespace espalier::client {

/// Encrypts rows in place. `slots`: an array of wire::ReservedSlots, of any bytes. Returns false if
/// they are not slots for such rows, one for each row; the rows are unspecified then.
[[nodiscard]] bool seal_rows(std::span<std::byte> rows, std::size_t row_bytes,
                             std::string_view slots, table::CtrCipher& cipher);

}  // namespace espalier::client
