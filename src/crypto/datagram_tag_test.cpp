// SPDX-License-Identifier: Apache-2.0
#include "crypto/datagram_tag.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <vector>

#include "crypto/hex.hpp"

namespace espalier::crypto {
namespace {

SecretBytes counting(unsigned from) {
  SecretBytes bytes;
  for (std::byte& each : bytes) each = static_cast<std::byte>(from++);
  return bytes;
}

wire::DatagramOffer offer() {
  wire::DatagramOffer of{};
  of.session = 0x0102'0304'0506'0708;
  for (std::size_t i = 0; i < sizeof of.nonce; ++i) of.nonce[i] = static_cast<std::uint8_t>(i);
  return of;
}

std::vector<std::byte> datagram() {
  std::vector<std::byte> bytes;
  for (unsigned i = 0; i < wire::kDatagramRequestBytes + 5; ++i) {
    bytes.push_back(static_cast<std::byte>(i));
  }
  return bytes;
}

TEST(DatagramKeys, EachSessionAndEachConnectionHasAnother) {
  SecretBytes key{};
  ASSERT_TRUE(datagram_key(counting(0), offer(), key));
  SecretBytes other{};
  auto of = offer();
  ++of.session;
  ASSERT_TRUE(datagram_key(counting(0), of, other));
  EXPECT_NE(key, other);
  of = offer();
  ++of.nonce[31];
  ASSERT_TRUE(datagram_key(counting(0), of, other));
  EXPECT_NE(key, other);
  ASSERT_TRUE(datagram_key(counting(1), offer(), other));
  EXPECT_NE(key, other);
  // Where the node is says nothing of it.
  of = offer();
  of.port = 7;
  ASSERT_TRUE(datagram_key(counting(0), of, other));
  EXPECT_EQ(key, other);
}

// Worked out by another library.
TEST(DatagramTags, AreTheFirstBytesOfAnHmac) {
  const SecretBytes key = counting(0);
  std::vector<std::byte> bytes = datagram();
  const auto tag = [&] {
    return to_hex(std::span(bytes).subspan(offsetof(wire::DatagramRequest, tag),
                                           wire::kDatagramTagBytes));
  };
  ASSERT_TRUE(sign_request(key, bytes));
  EXPECT_EQ(tag(), "68139672867fd9e844395e2513a1f882");
  ASSERT_TRUE(sign_reply(key, bytes));
  EXPECT_EQ(tag(), "493098ec85744fc74528e8ac817296cd");
  SecretBytes made{};
  ASSERT_TRUE(datagram_key(key, offer(), made));
  EXPECT_EQ(to_hex(made),
            "2ba16a02189705e4d4f98eff88f911b2efc83eac72c271358cfc2631ac52745a");
}

TEST(DatagramTags, EachByteButHintAndTagIsUnderThatOfARequest) {
  const SecretBytes key = counting(0);
  std::vector<std::byte> signed_one = datagram();
  ASSERT_TRUE(sign_request(key, signed_one));
  EXPECT_TRUE(is_signed_request(key, signed_one));
  EXPECT_FALSE(is_signed_request(counting(1), signed_one));
  for (std::size_t i = 0; i < signed_one.size(); ++i) {
    const bool hint = i >= offsetof(wire::DatagramRequest, hint) &&
                      i < offsetof(wire::DatagramRequest, tag);
    signed_one[i] ^= std::byte{0x10};
    EXPECT_EQ(is_signed_request(key, signed_one), hint) << i;
    signed_one[i] ^= std::byte{0x10};
  }
  signed_one.pop_back();
  EXPECT_FALSE(is_signed_request(key, signed_one));
}

TEST(DatagramTags, EachByteIsUnderThatOfAReply) {
  const SecretBytes key = counting(0);
  std::vector<std::byte> signed_one = datagram();
  ASSERT_TRUE(sign_reply(key, signed_one));
  EXPECT_TRUE(is_signed_reply(key, signed_one));
  for (std::size_t i = 0; i < signed_one.size(); ++i) {
    signed_one[i] ^= std::byte{0x10};
    EXPECT_FALSE(is_signed_reply(key, signed_one)) << i;
    signed_one[i] ^= std::byte{0x10};
  }
}

TEST(DatagramTags, OfTheLongestToo) {
  std::vector<std::byte> longest(wire::kDatagramBytesMax);
  ASSERT_TRUE(sign_reply(counting(0), longest));
  EXPECT_TRUE(is_signed_reply(counting(0), longest));
  ASSERT_TRUE(sign_request(counting(0), longest));
  EXPECT_TRUE(is_signed_request(counting(0), longest));
}

}  // namespace
}  // namespace espalier::crypto
