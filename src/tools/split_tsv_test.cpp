// SPDX-License-Identifier: Apache-2.0
#include "tools/split_tsv.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espalier::tools {
namespace {

using ::testing::ElementsAre;

TEST(SplitTsv, UndoesEscapesAndRefusesUnknownOnes) {
  std::vector<std::string_view> fields;
  std::string scratch;
  EXPECT_EQ(split_tsv("a\\tb\tc\\\\\t\td", fields, scratch), std::nullopt);
  EXPECT_THAT(fields, ElementsAre("a\tb", "c\\", "", "d"));
  EXPECT_EQ(split_tsv("a\t\\q", fields, scratch),
            "column 2: '\\\\q' at position 1 is no escape; write \\\\ for a backslash");
}

}  // namespace
}  // namespace espalier::tools
