// SPDX-License-Identifier: Apache-2.0
#include "engine/principal.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/random.hpp"

namespace espalier::offload {
namespace {

TEST(Principal, IsReadAsItWasWritten) {
  const PrincipalView shop{Right::write, "shop", "orders/"};
  const std::string bytes = bytes_of(shop);
  // Role 2, 4 bytes of name, 7 of prefix, 19 in all.
  EXPECT_EQ(bytes, std::string("\x02\x04\x07\x00shoporders/\x13\x00\x00\x00", 19));
  EXPECT_EQ(bytes.size(), shop.bytes());
  for (const std::string_view before : {"", "a payload before it"}) {
    const std::string message = std::string(before) + bytes;
    const auto read = read_principal(message);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->role, Right::write);
    EXPECT_EQ(read->name, "shop");
    EXPECT_EQ(read->prefix, "orders/");
    EXPECT_EQ(read->bytes(), bytes.size());
  }
  const auto all = read_principal(bytes_of({Right::none, "user 1000", ""}));
  ASSERT_TRUE(all);
  EXPECT_EQ(all->prefix, "");
  EXPECT_EQ(read_principal(bytes_of({Right::read, std::string(100, 'x'), ""}))->name.size(), 64u);
}

TEST(Principal, WhatIsNoneIsRefused) {
  const std::string good = bytes_of({Right::write, "shop", "orders/"});
  const auto with = [&](std::size_t at, char c) {
    std::string bytes = good;
    bytes[at] = c;
    return bytes;
  };
  EXPECT_TRUE(read_principal(with(0, 3)));
  EXPECT_TRUE(read_principal(with(0, 8)));
  EXPECT_TRUE(read_principal(with(0, 9)));
  for (const char none : {char{4}, char{7}, char{10}}) {
    EXPECT_FALSE(read_principal(with(0, none))) << "no such role";
  }
  EXPECT_FALSE(read_principal(with(1, 0)));
  EXPECT_FALSE(read_principal(with(1, 5)));
  EXPECT_FALSE(read_principal(with(2, 8)));
  EXPECT_FALSE(read_principal(with(3, 1)));
  EXPECT_FALSE(read_principal(with(4, '\n'))) << "a name is one line of a log";
  EXPECT_FALSE(read_principal(with(15, 20)));
  EXPECT_FALSE(read_principal(with(18, 1)));
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
    EXPECT_FALSE(read_principal(good.substr(0, bytes))) << bytes;
  }
}

// Whatever the bytes are, what is read lies within them.
TEST(Principal, AnyBytesAreReadSafely) {
  const std::uint64_t seed = base::seed_from_environment(1);
  SCOPED_TRACE("seed " + std::to_string(seed));
  base::Random random(seed);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random.between(0, 40), '\0');
    for (char& c : bytes)
      c = static_cast<char>(random.between(0, 3) == 0 ? random() : random() % 24);
    const auto read = read_principal(bytes);
    if (!read) continue;
    EXPECT_LE(read->bytes(), bytes.size());
    EXPECT_EQ(bytes_of(*read), bytes.substr(bytes.size() - read->bytes()));
  }
}

}  // namespace
}  // namespace espalier::offload
