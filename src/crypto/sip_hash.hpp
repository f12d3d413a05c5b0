// SPDX-License-Identifier: Apache-2.0
// SipHash-2-4 [Aumasson and Bernstein 2012]: a keyed hash of 64 bits, for marks that are good for
// seconds and must cost less than what they keep off. Needs no libcrypto, which hmac.hpp does.
//
// Thread: any; pure functions.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.hpp"

namespace espalier::crypto {

using SipKey = std::array<std::uint64_t, 2>;

/// Without the key an attacker can neither compute the hash of bytes nor find bytes of a hash.
/// Cost: about 1 ns for each byte.
[[nodiscard]] inline std::uint64_t sip_hash(const SipKey& key, std::span<const std::byte> bytes) {
  std::uint64_t v0 = key[0] ^ 0x736F6D6570736575;  // "somepseudorandomlygeneratedbytes"
  std::uint64_t v1 = key[1] ^ 0x646F72616E646F6D;
  std::uint64_t v2 = key[0] ^ 0x6C7967656E657261;
  std::uint64_t v3 = key[1] ^ 0x7465646279746573;
  const auto rounds = [&](int count) {
    for (; count != 0; --count) {
      v0 += v1;
      v2 += v3;
      v1 = std::rotl(v1, 13) ^ v0;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 = std::rotl(v0, 32);
      v2 += v1;
      v0 += v3;
      v1 = std::rotl(v1, 17) ^ v2;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 = std::rotl(v2, 32);
    }
  };
  const auto mix = [&](std::uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  };
  std::size_t at = 0;
  for (; bytes.size() - at >= 8; at += 8) mix(base::load_le<std::uint64_t>(bytes.data() + at));
  std::uint64_t last = std::uint64_t{bytes.size()} << 56;
  for (std::size_t i = 0; at + i < bytes.size(); ++i) {
    last |= std::to_integer<std::uint64_t>(bytes[at + i]) << 8 * i;
  }
  mix(last);
  v2 ^= 0xFF;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace espalier::crypto
