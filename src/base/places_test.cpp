// SPDX-License-Identifier: Apache-2.0
#include "base/places.hpp"

#include <gtest/gtest.h>

#include <set>

namespace espalier::base {
namespace {

constexpr std::uint8_t kLast = 22;

TEST(Places, EachHasItsOwnNameAndSentence) {
  std::set<std::string_view> names;
  std::set<std::string> sentences;
  for (std::uint8_t number = 1; number <= kLast; ++number) {
    const Error error = full_error(static_cast<Places>(number), 77);
    EXPECT_EQ(error.code, Code::too_many_participants);
    EXPECT_EQ(places_of(error), static_cast<Places>(number));
    EXPECT_EQ(places_max_of(error), 77u);
    names.insert(name(places_of(error)));
    const std::string text = full_message(error);
    EXPECT_EQ(text.back(), '.') << text;
    EXPECT_EQ(text.find("{}"), std::string::npos) << text;
    EXPECT_EQ(text, message(error));
    sentences.insert(text);
  }
  EXPECT_EQ(names.size(), kLast);
  EXPECT_FALSE(names.contains(""));
  EXPECT_EQ(sentences.size(), kLast);
}

TEST(Places, TellHowManyThereMayBe) {
  EXPECT_NE(full_message(full_error(Places::principal_snapshots, 1024)).find(" 1024 snapshots"),
            std::string::npos);
  EXPECT_EQ(places_max_of(full_error(Places::connections, std::uint64_t{1} << 40)), kPlacesMax);
  EXPECT_EQ(places_of(full_error(Places::connections, std::uint64_t{1} << 40)),
            Places::connections);
}

TEST(Places, OfAnotherVersionHaveNoWordsOfTheirOwn) {
  for (const Places places : {Places::unnamed, static_cast<Places>(kLast + 1)}) {
    EXPECT_EQ(name(places), "") << "a new one needs a name, a sentence and this test";
    EXPECT_EQ(full_message(full_error(places, 3)), "");
    EXPECT_NE(message(full_error(places, 3)), "");
  }
}

}  // namespace
}  // namespace espalier::base
