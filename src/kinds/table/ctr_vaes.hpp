// SPDX-License-Identifier: Apache-2.0
// The VAES kernel of CtrCipher: four blocks in each 512-bit register, 32 in flight.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>

namespace espalier::table {

/// Whether this processor has it, and ESPALIER_ISA allows it.
[[nodiscard]] bool has_vaes();

/// Writes the 11 round keys of a key, each of 16 bytes. Requires: has_vaes().
void expand_key_vaes(const std::byte* key, std::byte* rounds);

/// CtrCipher::apply_blocks(). Requires: has_vaes(); `rounds` are of expand_key_vaes().
void apply_ctr_vaes(const std::byte* rounds, std::uint64_t page, std::uint64_t block,
                    std::size_t within, const std::byte* in, std::byte* out, std::size_t bytes);

}  // namespace espalier::table
