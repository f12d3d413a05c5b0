// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/testing/tool_fixture.hpp"

namespace espalier::tools {
namespace {

using ::testing::HasSubstr;

TEST(CheckCommand, FindsNoFaultInASoundMap) {
  Tool tool;
  for (int i = 0; i < 5000; ++i) {
    tool.files.contents["a.tsv"] += std::to_string(i * 7919 % 5000) + "\tvalue\n";
  }
  for (const std::string node_bytes : {"512", "8192"}) {
    EXPECT_EQ(tool.run({"check", "a.tsv", "--node-bytes", node_bytes}), kOk);
    EXPECT_THAT(tool.out(), HasSubstr("items       5,000\n"));
    EXPECT_THAT(tool.out(), HasSubstr("no faults found\n"));
  }
}

TEST(CheckCommand, FindsNoFaultInASoundHashMap) {
  Tool tool;
  for (int i = 0; i < 5000; ++i) {
    tool.files.contents["a.tsv"] += std::to_string(i * 7919 % 5000) + "\tvalue\n";
  }
  for (const std::string versions : {"", "--no-versions"}) {
    std::vector<std::string> words = {"check", "a.tsv", "--kind", "hash", "--partitions", "4"};
    if (!versions.empty()) words.push_back(versions);
    EXPECT_EQ(tool.run(words), kOk) << tool.err() << tool.out();
    EXPECT_THAT(tool.out(), HasSubstr("items       5,000\n"));
    EXPECT_THAT(tool.out(), HasSubstr("no faults found\n"));
  }
  EXPECT_EQ(tool.run({"check", "a.tsv", "--kind", "hash", "--json"}), kOk);
  const auto object = nlohmann::json::parse(tool.out());
  EXPECT_EQ(object["items"], 5000);
  EXPECT_TRUE(object["faults"].empty());
  EXPECT_EQ(tool.run({"check", "a.tsv", "--kind", "hash", "--node-bytes", "512"}), kUsage);
  EXPECT_EQ(tool.run({"check", "a.tsv", "--partitions", "4"}), kUsage);
}

TEST(CheckCommand, PrintsJson) {
  Tool tool;
  tool.files.contents["a.tsv"] = "a\t1\nb\t2\n";
  EXPECT_EQ(tool.run({"check", "a.tsv", "--json", "--no-versions"}), kOk);
  const auto object = nlohmann::json::parse(tool.out());
  EXPECT_EQ(object["items"], 2);
  EXPECT_EQ(object["payload_bytes"], 4);
  EXPECT_EQ(object["height"], 1);
  EXPECT_TRUE(object["faults"].empty());
}

TEST(CheckCommand, AnEmptyMapIsSound) {
  Tool tool;
  EXPECT_EQ(tool.run({"check", "-"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr("items       0\n"));
}

}  // namespace
}  // namespace espalier::tools
