// SPDX-License-Identifier: Apache-2.0
// Properties of reservations of encrypted tables, as a check for correct and broken tables; and
// helpers that fill them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kinds/table/ctr_cipher.hpp"
#include "kinds/table/testing/random_table.hpp"

namespace espalier::table {

/// Encrypts rows for slots, in place. Requires: as many.
void encrypt_for(const Reservation& reservation, std::size_t row_bytes, CtrCipher& cipher,
                 std::span<std::byte> rows);

/// Appends rows to an encrypted table, some at a time. Returns: what went wrong.
[[nodiscard]] std::string append_encrypted(base::Random& random, Table& table, CtrCipher& cipher,
                                           std::span<const std::byte> rows);

/// Reserves, fills, gives up and outlives reservations by chance, for sessions that come and go.
/// Checks that no slot is reserved twice, that others neither fill nor end a reservation, that
/// rows come back from where their reservation said, and that the memory of what was given up goes
/// back. Returns: what is wrong.
[[nodiscard]] std::string difference_in_reservations(std::uint64_t seed, int rounds);

}  // namespace espalier::table
