// SPDX-License-Identifier: Apache-2.0
// CRC-32 with the polynomial 0x04C11DB7, least significant bit first: Ethernet's, and the ICRC of
// InfiniBand.
//
// It is incremental: a state goes in and comes out. The checksum of a text begins with kCrc32Start
// and ends with crc32_end(). The state is linear: the states of two texts of one length, begun with
// 0, xor as the texts do, which is why a switch can update a checksum without reading the whole
// packet (fabric/roce/icrc.hpp).
//
// Two forms: tables, 16 bytes a step, and carry-less multiplication (PCLMULQDQ). The first is the
// oracle of the second, and the tests compare it with a bitwise computation.
//
// Thread: pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace espalier::base {

inline constexpr std::uint32_t kCrc32Start = 0xFFFF'FFFF;
inline constexpr std::uint32_t kCrc32Polynomial = 0xEDB8'8320;  // its bits the other way round

using Crc32Table = std::array<std::uint32_t, 256>;

/// The state that a state becomes by one byte of 0.
[[nodiscard]] constexpr std::uint32_t crc32_zero_byte(std::uint32_t state) {
  for (int bit = 0; bit < 8; ++bit) {
    state = (state >> 1) ^ ((state & 1) != 0 ? kCrc32Polynomial : 0);
  }
  return state;
}

/// For each byte, the state that it makes of 0 when so many bytes of 0 follow it.
[[nodiscard]] constexpr Crc32Table crc32_table(unsigned zeros_behind) {
  Crc32Table table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) table[byte] = crc32_zero_byte(byte);
  const Crc32Table first = table;
  for (std::uint32_t& state : table) {
    for (unsigned i = 0; i < zeros_behind; ++i) state = (state >> 8) ^ first[state & 0xFF];
  }
  return table;
}

/// The first 16 of those tables; 16 KiB.
inline constexpr std::array<Crc32Table, 16> kCrc32Tables = [] {
  std::array<Crc32Table, 16> tables{};
  for (unsigned i = 0; i < tables.size(); ++i) tables[i] = crc32_table(i);
  return tables;
}();

/// Extends a state by more bytes, in the fastest form of this machine.
/// Cost: some nanoseconds for headers; of long pieces, 10 bytes or more in a nanosecond if folded,
/// else 3.
[[nodiscard]] std::uint32_t crc32_extend(std::uint32_t state, std::span<const std::byte> bytes);

[[nodiscard]] constexpr std::uint32_t crc32_end(std::uint32_t state) { return ~state; }

/// The checksum of one piece.
[[nodiscard]] inline std::uint32_t crc32(std::span<const std::byte> bytes) {
  return crc32_end(crc32_extend(kCrc32Start, bytes));
}

/// The form that works everywhere.
[[nodiscard]] std::uint32_t crc32_extend_by_table(std::uint32_t state,
                                                  std::span<const std::byte> bytes);
/// The form of processors with PCLMULQDQ. Requires: crc32_can_fold().
[[nodiscard]] std::uint32_t crc32_extend_by_folding(std::uint32_t state,
                                                    std::span<const std::byte> bytes);
/// Whether this processor has it, and ESPALIER_ISA allows more than plain C++.
[[nodiscard]] bool crc32_can_fold();

}  // namespace espalier::base
