// SPDX-License-Identifier: Apache-2.0
#include "node/config_value.hpp"

#include <gtest/gtest.h>

#include "node/config_text.hpp"

namespace espalier::node {
namespace {

constexpr std::uint64_t kMachine = 1000;

TEST(ConfigValue, CountsKeepTheirLimits) {
  const Rule rule{Kind::count, 1, 64};
  EXPECT_EQ(parse_value(rule, Text{"1"}, kMachine), Value(std::uint64_t{1}));
  EXPECT_EQ(parse_value(rule, std::int64_t{64}, kMachine), Value(std::uint64_t{64}));
  for (const char* wrong :
       {"", "0", "65", "-1", "+1", " 1", "1 ", "1.0", "0x1", "1K", "x", "99999999999999999999"}) {
    EXPECT_FALSE(parse_value(rule, Text{wrong}, kMachine).has_value()) << wrong;
  }
  for (const Raw& wrong : {Raw(std::int64_t{0}), Raw(std::int64_t{-1}), Raw(std::int64_t{65}),
                           Raw(std::string("4")), Raw(true), Raw(Other{"a date"})}) {
    EXPECT_FALSE(parse_value(rule, wrong, kMachine).has_value());
  }
  EXPECT_EQ(parse_value(rule, std::string("4"), kMachine).error().hint,
            "give a whole number from 1 to 64, without quotes");
}

TEST(ConfigValue, TogglesHaveWordsWhereThereAreNoTypes) {
  const Rule rule{Kind::toggle};
  for (const char* yes : {"true", "yes", "on", "1"}) {
    EXPECT_EQ(parse_value(rule, Text{yes}, kMachine), Value(true));
    EXPECT_FALSE(parse_value(rule, std::string(yes), kMachine).has_value());
  }
  for (const char* no : {"false", "no", "off", "0"}) {
    EXPECT_EQ(parse_value(rule, Text{no}, kMachine), Value(false));
  }
  EXPECT_EQ(parse_value(rule, false, kMachine), Value(false));
  for (const Raw& wrong :
       {Raw(Text{""}), Raw(Text{"True"}), Raw(Text{"2"}), Raw(std::int64_t{1})}) {
    EXPECT_FALSE(parse_value(rule, wrong, kMachine).has_value());
  }
}

TEST(ConfigValue, SizesHaveUnitsAndShapes) {
  const Rule rule{Kind::bytes, 64, 1 << 20};
  EXPECT_EQ(parse_value(rule, Text{"64K"}, kMachine), Value(std::uint64_t{65536}));
  EXPECT_EQ(parse_value(rule, std::string("1MiB"), kMachine), Value(std::uint64_t{1 << 20}));
  EXPECT_EQ(parse_value(rule, std::int64_t{64}, kMachine), Value(std::uint64_t{64}));
  for (const char* wrong : {"", "K", "63", "2M", "64KM", "1.5K", "-64", "50%", "99999999999G"}) {
    EXPECT_FALSE(parse_value(rule, Text{wrong}, kMachine).has_value()) << wrong;
    EXPECT_FALSE(parse_value(rule, std::string(wrong), kMachine).has_value()) << wrong;
  }
  const Rule power{Kind::bytes, 512, 65536, Shape::power_of_two};
  EXPECT_TRUE(parse_value(power, Text{"4K"}, kMachine).has_value());
  EXPECT_FALSE(parse_value(power, Text{"1000"}, kMachine).has_value());
  const Rule multiple{Kind::bytes, 0, 2048, Shape::multiple_of_64};
  EXPECT_TRUE(parse_value(multiple, Text{"0"}, kMachine).has_value());
  EXPECT_FALSE(parse_value(multiple, Text{"100"}, kMachine).has_value());
}

TEST(ConfigValue, MemoryIsAlsoAShareOfTheMachine) {
  const Rule rule{Kind::memory, 100, ~std::uint64_t{0}};
  EXPECT_EQ(parse_value(rule, Text{"75%"}, 1001), Value(std::uint64_t{750}));
  EXPECT_EQ(parse_value(rule, std::string("100%"), 1001), Value(std::uint64_t{1001}));
  EXPECT_EQ(parse_value(rule, Text{"100%"}, ~std::uint64_t{0}), Value(~std::uint64_t{0}));
  for (const char* wrong : {"0%", "101%", "%", "7.5%", "-5%", "5 %", "9%", "2K", "99", "50%%"}) {
    EXPECT_FALSE(parse_value(rule, Text{wrong}, kMachine).has_value()) << wrong;
  }
  EXPECT_NE(parse_value(rule, Text{"2K"}, 1024).error().hint.find("(1KiB)"), std::string::npos);
  // If the machine's memory is unknown, only a size is accepted.
  EXPECT_FALSE(parse_value(rule, Text{"75%"}, 0).has_value());
  EXPECT_EQ(parse_value(rule, Text{"2K"}, 0), Value(std::uint64_t{2048}));
}

TEST(ConfigValue, PermissionsAreOctalText) {
  const Rule rule{Kind::mode, 0, 0777};
  EXPECT_EQ(parse_value(rule, Text{"0600"}, kMachine), Value(std::uint64_t{0600}));
  EXPECT_EQ(parse_value(rule, std::string("777"), kMachine), Value(std::uint64_t{0777}));
  EXPECT_EQ(to_toml(rule, Value(std::uint64_t{0060})), "\"0060\"");
  for (const char* wrong :
       {"", "0", "60", "0o600", "00600", "1000", "0608", "-600", " 600", "rw"}) {
    EXPECT_FALSE(parse_value(rule, Text{wrong}, kMachine).has_value()) << wrong;
  }
  EXPECT_EQ(parse_value(rule, std::int64_t{600}, kMachine).error().hint,
            "give octal permissions from 0000 to 0777, in quotes");
}

TEST(ConfigValue, AddressesOfTheFabricAreLookedAt) {
  const Rule rule{Kind::fabric, 0, 100};
  EXPECT_EQ(parse_value(rule, Text{"none"}, kMachine), Value(std::string()));
  EXPECT_EQ(parse_value(rule, Text{""}, kMachine), Value(std::string()));
  const std::string two = " shm:/a  roce://192.0.2.1/1 ";
  EXPECT_EQ(parse_value(rule, Text{two}, kMachine), Value(two));
  EXPECT_EQ(fabric_addresses(two), (std::vector<std::string_view>{"shm:/a", "roce://192.0.2.1/1"}));
  const auto wrong = parse_value(rule, Text{"shm:/a roce://no_where/1"}, kMachine);
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().what, "cannot have 'roce://no_where/1' in it");
  EXPECT_NE(wrong.error().hint.find("HOST is an address"), std::string::npos);
  EXPECT_FALSE(parse_value(rule, Text{std::string(101, 's')}, kMachine).has_value());
  EXPECT_FALSE(parse_value(rule, std::int64_t{1}, kMachine).has_value());
}

TEST(ConfigValue, AHostWithAPortIsLookedAt) {
  const Rule rule{Kind::host_port, 0, 64};
  EXPECT_EQ(parse_value(rule, Text{"none"}, kMachine), Value(std::string()));
  EXPECT_EQ(parse_value(rule, Text{""}, kMachine), Value(std::string()));
  for (const char* good :
       {"192.0.2.1:4758", "192.0.2.1", "127.0.0.1:0", "[2001:db8::1]:65535", "2001:db8::1"}) {
    EXPECT_EQ(parse_value(rule, Text{good}, kMachine), Value(std::string(good)));
  }
  for (const char* wrong : {"localhost:4758", "192.0.2.1:65536", "192.0.2.1:", ":4758", "[::1",
                            "0.0.0.0:4758", "[::]:4758", "192.0.2.1 192.0.2.2"}) {
    EXPECT_FALSE(parse_value(rule, Text{wrong}, kMachine).has_value()) << wrong;
  }
  // The address is sent to clients, which could not reach all of these.
  const auto any = parse_value(rule, Text{"0.0.0.0:4758"}, kMachine);
  EXPECT_EQ(any.error().what, "cannot be '0.0.0.0:4758'");
  EXPECT_NE(any.error().hint.find("HOST or HOST:PORT"), std::string::npos);
  EXPECT_FALSE(parse_value(rule, std::int64_t{4758}, kMachine).has_value());
}

TEST(ConfigValue, TextIsPlainUtf8) {
  const Rule rule{Kind::path, 1, 10};
  for (const char* good : {"/", "./a b", "/t/\"\\'#", "/k\u00e4se", "/\u20ac", "/\U0001f333"}) {
    EXPECT_EQ(parse_value(rule, Text{good}, kMachine), Value(std::string(good)));
  }
  for (const char* wrong :
       {"", "12345678901", "a\nb", "a\tb", "\x7f", "\x80", "\xc3", "\xc0\x80", "\xc2\x85",
        "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff", "\xe2\x82"}) {
    EXPECT_FALSE(parse_value(rule, Text{wrong}, kMachine).has_value()) << printable(wrong);
  }
  EXPECT_FALSE(parse_value(rule, Text{std::string(1, '\0')}, kMachine).has_value());
  EXPECT_EQ(parse_value(rule, Text{"12345678901"}, kMachine).error().what,
            "cannot be '12345678901', which has 11 bytes");
  const Rule name{Kind::name, 1, 10};
  EXPECT_TRUE(parse_value(name, Text{"a_Z-0.9"}, kMachine).has_value());
  for (const char* wrong : {"", "a b", "a,b", "a/b", "k\u00e4se", "12345678901"}) {
    EXPECT_FALSE(parse_value(name, Text{wrong}, kMachine).has_value()) << wrong;
  }
}

TEST(ConfigValue, LevelsAreWords) {
  const Rule rule{Kind::level};
  EXPECT_EQ(parse_value(rule, Text{"trace"}, kMachine), Value(std::uint64_t{0}));
  EXPECT_EQ(parse_value(rule, std::string("error"), kMachine), Value(std::uint64_t{4}));
  for (const char* wrong : {"", "Info", "warning", "4"}) {
    EXPECT_FALSE(parse_value(rule, Text{wrong}, kMachine).has_value()) << wrong;
  }
}

}  // namespace
}  // namespace espalier::node
