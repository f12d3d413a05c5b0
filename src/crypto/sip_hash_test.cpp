// SPDX-License-Identifier: Apache-2.0
#include "crypto/sip_hash.hpp"

#include <gtest/gtest.h>

#include <array>

namespace espalier::crypto {
namespace {

// The reference's own vectors: the key is 00 01 .. 0F, and the input 00 01 .. of each length.
TEST(SipHash, HashesAsTheReferenceDoes) {
  const SipKey key{0x0706050403020100, 0x0F0E0D0C0B0A0908};
  std::array<std::byte, 64> input{};
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<std::byte>(i);
  const auto of = [&](std::size_t bytes) { return sip_hash(key, std::span(input).first(bytes)); };
  EXPECT_EQ(of(0), 0x726FDB47DD0E0E31u);
  EXPECT_EQ(of(1), 0x74F839C593DC67FDu);
  EXPECT_EQ(of(7), 0xAB0200F58B01D137u);
  EXPECT_EQ(of(8), 0x93F5F5799A932462u);
  EXPECT_EQ(of(15), 0xA129CA6149BE45E5u);
  EXPECT_EQ(of(63), 0x958A324CEB064572u);
}

TEST(SipHash, AnotherKeyHashesOtherwise) {
  const std::array<std::byte, 16> input{};
  EXPECT_NE(sip_hash({1, 2}, input), sip_hash({1, 3}, input));
  EXPECT_NE(sip_hash({1, 2}, input), sip_hash({2, 2}, input));
}

}  // namespace
}  // namespace espalier::crypto
