// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.hpp"

#include <immintrin.h>

#include <array>

#include "base/bytes.hpp"
#include "base/cpu.hpp"

namespace espalier::base {
namespace {

constexpr std::array<std::uint32_t, 256> kCrc32cTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t state = byte;
    for (int bit = 0; bit < 8; ++bit) {
      state = (state >> 1) ^ ((state & 1) != 0 ? kCrc32cPolynomial : 0);
    }
    table[byte] = state;
  }
  return table;
}();

}  // namespace

std::uint32_t crc32c_extend_by_table(std::uint32_t state, std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) {
    state = (state >> 8) ^ kCrc32cTable[(state ^ std::to_integer<std::uint32_t>(byte)) & 0xFF];
  }
  return state;
}

__attribute__((target("sse4.2"))) std::uint32_t crc32c_extend_by_instruction(
    std::uint32_t state, std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t wide = state;
  for (; left >= 8; at += 8, left -= 8) wide = _mm_crc32_u64(wide, load_le<std::uint64_t>(at));
  state = static_cast<std::uint32_t>(wide);
  for (; left != 0; ++at, --left) {
    state = _mm_crc32_u8(state, std::to_integer<std::uint8_t>(*at));
  }
  return state;
}

bool crc32c_has_instruction() {
  static const bool has = cpu_features().sse42 && isa() != Isa::scalar;
  return has;
}

std::uint32_t crc32c_extend(std::uint32_t state, std::span<const std::byte> bytes) {
  return crc32c_has_instruction() ? crc32c_extend_by_instruction(state, bytes)
                                  : crc32c_extend_by_table(state, bytes);
}

}  // namespace espalier::base
