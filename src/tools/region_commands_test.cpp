// SPDX-License-Identifier: Apache-2.0
// The commands on regions, against a node in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/testing/node_fixture.hpp"

namespace espalier::tools {
namespace {

using ::testing::HasSubstr;

class RegionCommands : public NodeTool {
 protected:
  int region(std::vector<std::string> words) {
    words.insert(words.begin(), "region");
    words.insert(words.begin() + 2, {"--at", address});
    return tool.run(words);
  }
};

TEST_F(RegionCommands, MakeReadAndWrite) {
  ASSERT_EQ(region({"create", "flags", "16"}), kOk) << tool.err();
  EXPECT_EQ(tool.out(), "made region 'flags', of 16 bytes\n");
  ASSERT_EQ(region({"write", "flags", "on", "--offset", "4"}), kOk) << tool.err();
  EXPECT_EQ(tool.out(), "");
  ASSERT_EQ(region({"read", "flags", "--offset", "4", "--bytes", "2"}), kOk) << tool.err();
  EXPECT_EQ(tool.out(), "on");
  ASSERT_EQ(region({"read", "flags"}), kOk);
  EXPECT_EQ(tool.out(), std::string("\0\0\0\0on", 6) + std::string(10, '\0'));
  ASSERT_EQ(region({"read", "flags", "--offset", "4", "--bytes", "2", "--json"}), kOk);
  EXPECT_EQ(tool.out(), "{\"region\":\"flags\",\"offset\":4,\"value\":\"on\"}\n");
  ASSERT_EQ(region({"write", "flags", "off", "--json"}), kOk);
  EXPECT_EQ(tool.out(), "{\"region\":\"flags\",\"offset\":0,\"bytes\":3}\n");
  ASSERT_EQ(region({"read", "flags", "--offset", "16"}), kOk);
  EXPECT_EQ(tool.out(), "");
}

TEST_F(RegionCommands, ListAndDropAndSayWhatIsWrong) {
  ASSERT_EQ(region({"create", "b", "8", "--json"}), kOk);
  EXPECT_EQ(tool.out(), "{\"region\":\"b\",\"bytes\":8}\n");
  ASSERT_EQ(region({"create", "a", "24"}), kOk);
  ASSERT_EQ(region({"list"}), kOk);
  EXPECT_EQ(tool.out(), "a\nb\n");
  ASSERT_EQ(region({"list", "--json"}), kOk);
  EXPECT_EQ(tool.out(), "{\"region\":\"a\",\"bytes\":24}\n{\"region\":\"b\",\"bytes\":8}\n");
  ASSERT_EQ(tool.run({"list", "--at", address}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr("region    a\n"));
  EXPECT_EQ(region({"create", "a", "8"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has a region 'a' already"));
  EXPECT_EQ(region({"create", "c", "0"}), kFailed);
  EXPECT_EQ(region({"create", "c", "many"}), kUsage);
  EXPECT_EQ(region({"read", "default"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("is a map"));
  EXPECT_EQ(region({"read", "none"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has no region 'none'"));
  EXPECT_EQ(region({"read", "a", "--offset", "25"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("not all of these bytes are within region 'a'"));
  EXPECT_EQ(region({"read", "a", "--bytes", "18446744073709551615"}), kFailed);
  EXPECT_EQ(region({"write", "a", "too far", "--offset", "20"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("not all of these bytes are within region 'a'"));
  ASSERT_EQ(region({"drop", "a", "--json"}), kOk);
  EXPECT_EQ(tool.out(), "{\"region\":\"a\",\"dropped\":true}\n");
  EXPECT_EQ(region({"drop", "a"}), kFailed);
  ASSERT_EQ(region({"drop", "b"}), kOk);
  EXPECT_EQ(tool.out(), "dropped region 'b'\n");
  EXPECT_EQ(tool.run({"region", "list"}), kUsage);
  EXPECT_EQ(tool.run({"region", "list", "--at", "embedded"}), kUsage);
}

}  // namespace
}  // namespace espalier::tools
