// SPDX-License-Identifier: Apache-2.0
#include "cmdline/number_option.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace espalier::cmdline {
namespace {

TEST(NumberOption, WholeNumbersAreDigitsWithinTheirLimits) {
  const Range<std::uint64_t> any;
  EXPECT_EQ(parse_number<std::uint64_t>("0", any), 0u);
  EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551615", any), ~std::uint64_t{0});
  for (const char* bad : {"", "-1", "-0", "+1", "99999999999999999999", "18446744073709551616",
                          "abc", "1.0", "1e3", " 1", "1 ", "0x10", "1,2", "1k"}) {
    EXPECT_EQ(parse_number<std::uint64_t>(bad, any), std::nullopt) << bad;
  }
  EXPECT_EQ(parse_number<std::uint32_t>("4294967296", {}), std::nullopt);
  EXPECT_EQ(parse_number<std::uint32_t>("64", {1, 64}), 64u);
  EXPECT_EQ(parse_number<std::uint32_t>("65", {1, 64}), std::nullopt);
  EXPECT_EQ(parse_number<std::uint32_t>("0", {1, 64}), std::nullopt);
}

TEST(NumberOption, FractionsAreFiniteAndWithinTheirLimits) {
  const Range<double> any;
  EXPECT_EQ(parse_number<double>("0.5", any), 0.5);
  EXPECT_EQ(parse_number<double>("1e3", any), 1000.0);
  for (const char* bad : {"", "nan", "NAN", "-nan", "inf", "-inf", "infinity", "1e999", "-1", "-0",
                          "0x1p3", "1.5s", "."}) {
    EXPECT_EQ(parse_number<double>(bad, any), std::nullopt) << bad;
  }
  EXPECT_EQ(parse_number<double>("0.04", {0.05, 3600}), std::nullopt);
  EXPECT_EQ(parse_number<double>("3600", {0.05, 3600}), 3600.0);
}

TEST(NumberOption, WhatWasExpectedIsSaid) {
  EXPECT_EQ(expected(Range<std::uint32_t>{1, 64}), "a whole number from 1 to 64");
  EXPECT_EQ(expected(Range<double>{0.05, 3600}), "a number from 0.05 to 3600");
  EXPECT_EQ(expected(Range<double>{}), "a number of 0 or more");
}

/// What a command with three options says to these words; empty: nothing.
std::string said(const std::string& words) {
  CLI::App app;
  std::uint32_t count = 3;
  double seconds = 0;
  std::vector<std::uint64_t> list{1};
  add_number(app, "-c,--count", count, "", {1, 9});
  add_number(app, "--seconds", seconds, "");
  add_numbers(app, "--list", list, "");
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}

TEST(NumberOption, ARefusalNamesTheOptionAndWhatWasGiven) {
  EXPECT_EQ(said("-c 9 --seconds 0.5 --list 1,2,3"), "");
  EXPECT_EQ(said("-c 10"), "--count: '10' is not a whole number from 1 to 9");
  EXPECT_EQ(said("--count=-1"), "--count: '-1' is not a whole number from 1 to 9");
  EXPECT_EQ(said("--count -1"), "--count: '-1' is not a whole number from 1 to 9");
  EXPECT_EQ(said("--seconds nan"), "--seconds: 'nan' is not a number of 0 or more");
  EXPECT_EQ(said("--list 1,-2"),
            "--list: '-2' is not a whole number from 0 to 18446744073709551615");
}

TEST(NumberOption, WithoutItNothingChangesAndTheHelpSaysWhatItIs) {
  CLI::App app;
  std::uint32_t count = 3;
  std::vector<std::uint64_t> list{1, 2};
  add_number(app, "--count", count, "how many");
  add_numbers(app, "--list", list, "which");
  EXPECT_NE(app.help().find("--count N=3"), std::string::npos) << app.help();
  app.parse("");
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(list.size(), 2u);
  app.parse("--list 7 --count 5");
  EXPECT_EQ(count, 5u);
  EXPECT_EQ(list, std::vector<std::uint64_t>{7});
}

}  // namespace
}  // namespace espalier::cmdline
