// SPDX-License-Identifier: Apache-2.0
// Messages of errors send people to settings that there are.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/places.hpp"
#include "espalier/error.hpp"
#include "node/config_settings.hpp"

namespace espalier::node {
namespace {

/// Options of a store in the process, and of a map.
constexpr std::array<std::string_view, 4> kOptions = {"memory_bytes_max", "node_user",
                                                      "participants_max", "snapshot_bytes_max"};

bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

/// The first word that looks like a setting, and is none.
std::string unknown_setting(const std::string& message) {
  for (std::size_t at = 0; at < message.size();) {
    const auto begin = std::find_if(message.begin() + static_cast<std::ptrdiff_t>(at),
                                    message.end(), in_word);
    const auto end = std::find_if_not(begin, message.end(), in_word);
    at = static_cast<std::size_t>(end - message.begin());
    std::string word(begin, end);
    while (word.ends_with('.')) word.pop_back();
    const bool dotted = word.find('.') != std::string::npos;
    const bool known = std::ranges::any_of(settings(), [&](const Setting& setting) {
      return setting.key == word;
    });
    if (dotted && !known) return word;
    if (!dotted && word.find('_') != std::string::npos && std::islower(word.front()) != 0 &&
        std::ranges::find(kOptions, word) == kOptions.end()) {
      return word;
    }
  }
  return {};
}

TEST(ErrorSettings, MessagesNameSettingsThatThereAre) {
  EXPECT_EQ(unknown_setting("Raise clients.connections_max, or participants_max."), "");
  EXPECT_EQ(unknown_setting("Raise clients.places_max."), "clients.places_max");
  EXPECT_EQ(unknown_setting("Raise places_max."), "places_max");
  for (int code = 1; code < 64; ++code) {
    for (std::uint32_t detail = 0; detail < 8; ++detail) {
      EXPECT_EQ(unknown_setting(message({static_cast<Code>(code), 0, detail})), "") << code;
    }
  }
}

TEST(ErrorSettings, WhatIsFullIsSaidAndASettingOnlyWhereItHelps) {
  const std::map<base::Places, std::string> settings = {
      {base::Places::participants, "participants_max"},
      {base::Places::connections, "clients.connections_max"},
      {base::Places::principal_connections, "clients.principal_connections_max"}};
  std::set<std::string> messages;
  for (std::uint8_t number = 1; number <= 18; ++number) {
    const auto places = static_cast<base::Places>(number);
    const std::string text = message(base::full_error(places, 4321));
    EXPECT_EQ(unknown_setting(text), "");
    const auto setting = settings.find(places);
    if (setting == settings.end()) {
      EXPECT_EQ(text.find("_max"), std::string::npos) << text;
    } else {
      EXPECT_NE(text.find("raise " + setting->second + "."), std::string::npos) << text;
    }
    messages.insert(text);
  }
  EXPECT_EQ(messages.size(), 18u);
  EXPECT_EQ(message(fail(Code::too_many_participants, 64).error()).find("_max"), std::string::npos);
}

}  // namespace
}  // namespace espalier::node
