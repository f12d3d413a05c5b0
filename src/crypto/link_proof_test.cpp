// SPDX-License-Identifier: Apache-2.0
// What is signed, held against values of another implementation of HMAC-SHA256 (Python's), and what
// a change of any bit does.
#include "crypto/link_proof.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "crypto/hex.hpp"

namespace espalier::crypto {
namespace {

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  append_hex(bytes, text);
  return text;
}
std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// RFC 4231, cases 1, 2 and 6.
TEST(Hmac, IsThatOfTheStandard) {
  std::array<std::byte, 20> key;
  key.fill(std::byte{0x0b});
  EXPECT_EQ(hex(*hmac_sha256(key, {bytes_of("Hi "), bytes_of(""), bytes_of("There")})),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(*hmac_sha256(bytes_of("Jefe"), {bytes_of("what do ya want for nothing?")})),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  std::array<std::byte, 131> longer;
  longer.fill(std::byte{0xaa});
  EXPECT_EQ(hex(*hmac_sha256(longer,
                             {bytes_of("Test Using Larger Than Block-Size Key - Hash Key First")})),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Hmac, IsComparedWhole) {
  Digest a{};
  Digest b{};
  EXPECT_TRUE(equal_in_secret(a, b));
  for (std::size_t bit = 0; bit < 8 * a.size(); ++bit) {
    b = a;
    b[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(equal_in_secret(a, b)) << bit;
  }
  EXPECT_TRUE(equal_in_secret({}, {}));
}

/// One exchange, as both sides see it.
struct Exchange {
  SecretBytes secret{};
  wire::LinkChallenge challenge{};
  wire::LinkProof proof{};
  wire::LinkProven proven{};
  wire::LinkHello hello{};

  Exchange() {
    for (std::size_t i = 0; i < secret.size(); ++i) secret[i] = static_cast<std::byte>(i);
    challenge.magic = proof.magic = proven.magic = wire::kProofMagic;
    challenge.step = static_cast<std::uint32_t>(wire::ProofStep::challenge);
    challenge.node_pair = 7;
    challenge.node_id = 0x1122334455667788;
    challenge.nonce.fill(std::byte{0xA0});
    proof.step = static_cast<std::uint32_t>(wire::ProofStep::proof);
    proof.client_pair = 9;
    proof.nonce.fill(std::byte{0xB0});
    std::memcpy(proof.name.data(), "shop", 4);
    proof.digest = client_digest(secret, challenge, proof).value();
    proven.step = static_cast<std::uint32_t>(wire::ProofStep::proven);
    proven.token = {3, 4};
    proven.digest = node_digest(secret, challenge, proof, proven).value();
    hello.magic = wire::kLinkMagic;
    hello.protocol = 1;
    hello.way = 1;
    hello.request_slots_log2 = 9;
    hello.response_slots_log2 = 10;
    hello.response_rings = 8;
    hello.token = proven.token;
    hello.base = 0x5000;
    hello.key = 77;
    hello.reserved = 1;
  }
  [[nodiscard]] SecretBytes key() const {
    SecretBytes key{};
    EXPECT_TRUE(session_key(secret, challenge, proof, key));
    return key;
  }
  [[nodiscard]] Digest client() const { return client_digest(secret, challenge, proof).value(); }
  [[nodiscard]] Digest node() const {
    return node_digest(secret, challenge, proof, proven).value();
  }
};

TEST(LinkProof, SignsWhatTheFormatSays) {
  const Exchange e;
  EXPECT_EQ(hex(e.proof.digest),
            "0256432b079481d0da7110225f93158ec6124e4a4b64d06c67d789ab50f1ea60");
  EXPECT_EQ(hex(e.proven.digest),
            "042f8943ab6aa5b6cae7f0dfc4bee0fd445d4e9c1c66c9cc80338371cf0a0cee");
  EXPECT_EQ(hex(e.key()), "ef0bda7d97c598f8dc9b459a88ad8c8e39dda53b2a6b4ac3d7d04d7548af1846");
  EXPECT_EQ(*hello_mark(e.key(), e.hello), 0xee5f7e2fe5ec535bu);
}

// Each bit of all that was said counts.
TEST(LinkProof, IsOfAllThatWasSaid) {
  const Exchange e;
  const SecretBytes key = e.key();
  // Calls with a copy of which one bit of a member is another.
  const auto each_bit = [](auto Exchange::*member, std::size_t bytes, const auto& differs) {
    for (std::size_t bit = 0; bit < 8 * bytes; ++bit) {
      Exchange other;
      reinterpret_cast<std::byte*>(&(other.*member))[bit / 8] ^= std::byte{1} << (bit % 8);
      differs(other, bit / 8);
    }
  };
  const auto all_differ = [&](const Exchange& other, std::size_t /*byte*/) {
    EXPECT_NE(other.client(), e.proof.digest);
    EXPECT_NE(other.node(), e.proven.digest);
    EXPECT_NE(other.key(), key);
  };
  each_bit(&Exchange::secret, sizeof(SecretBytes), all_differ);
  each_bit(&Exchange::challenge, sizeof(wire::LinkChallenge), all_differ);
  each_bit(&Exchange::proof, sizeof(wire::LinkProof), [&](const Exchange& other, std::size_t byte) {
    const bool signs = byte < offsetof(wire::LinkProof, digest);
    EXPECT_EQ(other.client() != e.proof.digest, signs);
    EXPECT_NE(other.node(), e.proven.digest);
    EXPECT_NE(other.key(), key);
  });
  each_bit(&Exchange::proven, offsetof(wire::LinkProven, digest),
           [&](const Exchange& other, std::size_t) { EXPECT_NE(other.node(), e.proven.digest); });
  each_bit(&Exchange::hello, sizeof(wire::LinkHello), [&](const Exchange& other, std::size_t) {
    EXPECT_NE(*hello_mark(key, other.hello), *hello_mark(key, e.hello));
  });
}

// A signature sent back to its signer is of no use, and no digest is the session's key.
TEST(LinkProof, IsForOnePurpose) {
  const Exchange e;
  EXPECT_NE(e.proof.digest, e.proven.digest);
  EXPECT_NE(hex(e.key()), hex(e.proof.digest));
  EXPECT_NE(hex(e.key()), hex(e.proven.digest));
}

}  // namespace
}  // namespace espalier::crypto
