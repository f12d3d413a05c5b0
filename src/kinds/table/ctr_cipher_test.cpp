// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/ctr_cipher.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "crypto/hex.hpp"
#include "kinds/table/ctr_vaes.hpp"

namespace espalier::table {
namespace {

std::vector<std::byte> bytes_of_hex(std::string_view text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(digit(text[i]) * 16 + digit(text[i + 1])));
  }
  return bytes;
}

KeyBytes key_of_hex(std::string_view text) {
  KeyBytes key{};
  const auto bytes = bytes_of_hex(text);
  std::memcpy(key.data(), bytes.data(), key.size());
  return key;
}

/// The forms that this machine has.
std::vector<CtrCipher> ciphers_of(const KeyBytes& key) {
  std::vector<CtrCipher> ciphers;
  ciphers.push_back(CtrCipher::of_key(key, CtrCipher::Form::evp).value());
  if (has_vaes()) ciphers.push_back(CtrCipher::of_key(key).value());
  return ciphers;
}

// NIST SP 800-38A, F.5.1. Its first counter block is a page's number and a block's.
TEST(CtrCipher, GivesTheKnownCipherText) {
  const auto plain = bytes_of_hex(
      "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
      "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710");
  const std::string known =
      "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff"
      "5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee";
  constexpr std::uint64_t kPage = 0xf0f1f2f3f4f5f6f7;
  constexpr std::uint64_t kBlock = 0xf8f9fafbfcfdfeff;
  for (CtrCipher& cipher : ciphers_of(key_of_hex("2b7e151628aed2a6abf7158809cf4f3c"))) {
    std::vector<std::byte> out(plain.size());
    cipher.apply_blocks(kPage, kBlock, 0, plain.data(), out.data(), plain.size());
    EXPECT_EQ(crypto::to_hex(out), known) << cipher.uses_vaes();
    // Each byte alone.
    for (std::size_t i = 0; i < plain.size(); ++i) {
      std::byte one = out[i];
      cipher.apply_blocks(kPage, kBlock + i / 16, i % 16, &one, &one, 1);
      ASSERT_EQ(one, plain[i]) << i;
    }
  }
}

// RFC 5869, A.1 to A.3.
TEST(CtrCipher, DerivesTheKnownKeys) {
  const auto derived = [](std::string_view secret, std::string_view salt, std::string_view info,
                          std::size_t bytes) {
    const auto info_bytes = bytes_of_hex(info);
    std::vector<std::byte> out(bytes);
    const std::string_view text(reinterpret_cast<const char*>(info_bytes.data()),
                                info_bytes.size());
    EXPECT_TRUE(derive_key(bytes_of_hex(secret), bytes_of_hex(salt), text, out));
    return crypto::to_hex(out);
  };
  const auto counted = [](unsigned first, unsigned count) {
    std::vector<std::byte> bytes;
    for (unsigned i = 0; i < count; ++i) bytes.push_back(static_cast<std::byte>(first + i));
    return crypto::to_hex(bytes);
  };
  std::string eleven;
  for (int i = 0; i < 22; ++i) eleven += "0b";
  EXPECT_EQ(derived(eleven, counted(0, 13), counted(0xf0, 10), 42),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
  EXPECT_EQ(derived(counted(0, 80), counted(0x60, 80), counted(0xb0, 80), 82),
            "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41"
            "c65e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87");
  EXPECT_EQ(derived(eleven, "", "", 42),
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8");
}

TEST(CtrCipherRandom, BothFormsGiveTheSameAtAnyPlace) {
  // There is one form to hold against itself then; tests/skips.txt lists this.
  if (!has_vaes()) GTEST_SKIP() << "this processor has no VAES over 512 bits";
  base::Random random(1);
  for (int round = 0; round < 500; ++round) {
    KeyBytes key;
    random.fill(key);
    CtrCipher fast = CtrCipher::of_key(key).value();
    CtrCipher oracle = CtrCipher::of_key(key, CtrCipher::Form::evp).value();
    ASSERT_TRUE(fast.uses_vaes() && !oracle.uses_vaes());
    const std::uint64_t page = random.chance(0.2) ? ~std::uint64_t{0} : random.below(1000);
    const std::uint64_t offset = random.below(std::uint64_t{2} << 20);
    std::vector<std::byte> text(random.below(random.chance(0.1) ? 20000 : 700));
    random.fill(text);
    std::vector<std::byte> wanted(text.size() + 1);
    std::vector<std::byte> found(text.size() + 1);
    oracle.apply(page, offset, text.data(), wanted.data(), text.size());
    fast.apply(page, offset, text.data(), found.data(), text.size());
    ASSERT_EQ(found, wanted) << page << " " << offset << " " << text.size();
    // In place, from some byte on.
    const std::size_t from = random.below(text.size() + 1);
    fast.apply(page, offset + from, text.data() + from, text.data() + from, text.size() - from);
    ASSERT_TRUE(std::equal(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(),
                           wanted.begin() + static_cast<std::ptrdiff_t>(from)));
  }
}

TEST(CtrCipher, KeysOfTablesAndResultsDiffer) {
  const KeyBytes key{};
  const SaltBytes salt{};
  SaltBytes other{};
  other[31] = std::byte{1};
  std::vector<std::string> seen;
  const auto add = [&](CtrCipher cipher) {
    std::vector<std::byte> stream(32);
    cipher.apply(0, 0, stream.data(), stream.data(), stream.size());
    seen.push_back(crypto::to_hex(stream));
  };
  add(CtrCipher::derived(key, salt, kTableKeyInfo).value());
  add(CtrCipher::derived(key, salt, kResultKeyInfo).value());
  add(CtrCipher::derived(key, other, kTableKeyInfo).value());
  add(CtrCipher::derived(key, salt, kTableKeyInfo, CtrCipher::Form::evp).value());
  EXPECT_NE(seen[0], seen[1]);
  EXPECT_NE(seen[0], seen[2]);
  EXPECT_EQ(seen[0], seen[3]);
}

TEST(CryptoLibrary, IsMissedInWordsOnlyWhereItIsWanted) {
  EXPECT_EQ(crypto::load_crypto("libcrypto-that-is-not-there.so").error().code, Code::unsupported);
  EXPECT_EQ(crypto::load_crypto("libm.so.6").error().code, Code::unsupported) << "another library";
}

}  // namespace
}  // namespace espalier::table
