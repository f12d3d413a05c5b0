// SPDX-License-Identifier: Apache-2.0
#include "base/nearest.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace espalier::base {
namespace {

TEST(Nearest, CountsMistakes) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("load", "laod"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("scan", "scan"), 0U);
}

TEST(Nearest, SuggestsWhatWasMeant) {
  const std::vector<std::string> commands{"get",  "put",    "erase", "scan",
                                          "load", "export", "check", "bench"};
  EXPECT_EQ(nearest("laod", commands), "load");
  EXPECT_EQ(nearest("exprot", commands), "export");
  EXPECT_EQ(nearest("ex", commands), "export");
  EXPECT_EQ(nearest("e", commands), "");  // erase or export
  EXPECT_EQ(nearest("server", commands), "");
  EXPECT_EQ(nearest("", commands), "");
  EXPECT_EQ(nearest(std::string(10'000, 'x'), commands), "");
}

}  // namespace
}  // namespace espalier::base
