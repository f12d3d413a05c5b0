// SPDX-License-Identifier: Apache-2.0
#include "channel/rings/node_address.hpp"

#include <gtest/gtest.h>

#include <string>

#include "espalier/map.hpp"

namespace espalier::client {
namespace {

TEST(NodeAddress, WhatIsNoneIsNamedWithTheFormsThereAre) {
  for (const std::string bad : {"bogus:x", "", "unix:", "/run/x"}) {
    ASSERT_EQ(Store::connect(bad).error().code, Code::invalid_argument) << bad;
    const std::string text = Store::explain_address(bad);
    EXPECT_TRUE(text.starts_with("'" + bad + "' is no address of a store. ")) << text;
    for (const char* form : {"unix:PATH", "shm:PATH", "roce://HOST", "roce+memif:PATH",
                             "roce+xdp://INTERFACE", "ofi://PROVIDER", "embedded"}) {
      EXPECT_NE(text.find(form), std::string::npos) << text;
    }
  }
}

TEST(NodeAddress, AKnownFormIsToldWhatIsWrongWithIt) {
  const std::string text = Store::explain_address("roce://192.0.2/1");
  EXPECT_NE(text.find("HOST is an address"), std::string::npos) << text;
  EXPECT_EQ(text.find("ofi://"), std::string::npos) << text;
  EXPECT_NE(Store::explain_address("shm:/s?rings=both").find("?rings=send"), std::string::npos);
}

TEST(NodeAddress, NothingIsSaidOfAGoodOne) {
  for (const char* good : {"embedded", "unix:/s", "shm:/s", "shm:/s?rings=send",
                           "roce://192.0.2.1/1", "ofi://tcp/192.0.2.1"}) {
    EXPECT_EQ(Store::explain_address(good), "") << good;
  }
}

}  // namespace
}  // namespace espalier::client
