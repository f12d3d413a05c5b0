// SPDX-License-Identifier: Apache-2.0
#include "tools/save.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "tools/testing/memory_files.hpp"

namespace espalier::tools {
namespace {

/// A map with a few items, and somewhere to save it.
class SaveTest : public ::testing::Test {
 protected:
  SaveTest() : store_(open()), map_(store_.create_map("m").value()) {
    EXPECT_TRUE(map_.put("b", "2"));
    EXPECT_TRUE(map_.put("a", "1"));
  }
  static Store open() {
    StoreOptions options;
    options.memory_bytes_max = std::uint64_t{64} << 20;
    return Store::open(options).value();
  }

  MemorySource input_{""};
  MemoryFiles files_;
  std::ostringstream out_;
  Environment environment_{
      .input = input_, .out = out_, .err = out_, .files = files_, .now_ns = [] { return 0; }};
  Store store_;
  Map map_;
};

TEST_F(SaveTest, WritesAllItemsInKeyOrder) {
  EXPECT_EQ(save(environment_, map_, "-", {Format::csv, ';', "k;v"}), 2U);
  EXPECT_EQ(out_.str(), "k;v\na;1\nb;2\n");
  EXPECT_EQ(save(environment_, map_, "f", {Format::tsv, ',', ""}), 2U);
  EXPECT_EQ(files_.contents["f"], "a\t1\nb\t2\n");
}

TEST_F(SaveTest, AFailureLeavesTheFileAsItWas) {
  ASSERT_TRUE(map_.put("c\n", ""));
  files_.contents["f"] = "old";
  EXPECT_FALSE(save(environment_, map_, "f", {Format::lines, ',', ""}));
  EXPECT_EQ(files_.contents["f"], "old");
}

TEST_F(SaveTest, AChangedStampStopsIt) {
  files_.contents["f"] = "old";
  const std::string stamp = files_.info("f")->stamp;
  EXPECT_TRUE(save_if_unchanged(environment_, map_, "f", {Format::tsv, ',', ""}, stamp));
  EXPECT_FALSE(save_if_unchanged(environment_, map_, "f", {Format::tsv, ',', ""}, stamp));
  EXPECT_FALSE(save_if_unchanged(environment_, map_, "g", {Format::tsv, ',', ""}, stamp));
  EXPECT_TRUE(save_if_unchanged(environment_, map_, "g", {Format::tsv, ',', ""}, ""));
}

TEST_F(SaveTest, KnowsWhatATextWouldBeTakenFor) {
  EXPECT_TRUE(check_recognisable(map_, {Format::tsv, ',', ""}));
  EXPECT_TRUE(check_recognisable(map_, {Format::csv, ',', ""}));
  EXPECT_TRUE(check_recognisable(map_, {Format::json_lines, ',', ""}));
  EXPECT_TRUE(check_recognisable(map_, {Format::lines, ',', ""}));
  ASSERT_TRUE(map_.erase("b")->applied);
  ASSERT_TRUE(map_.erase("a")->applied);
  EXPECT_TRUE(check_recognisable(map_, {Format::csv, ',', ""}));
  ASSERT_TRUE(map_.put("x,y", ""));
  EXPECT_FALSE(check_recognisable(map_, {Format::lines, ',', ""}));
}

}  // namespace
}  // namespace espalier::tools
