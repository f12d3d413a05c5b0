// SPDX-License-Identifier: Apache-2.0
// The commands on embedding tables, against a node in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/testing/node_fixture.hpp"
#include "tools/testing/npy_text.hpp"

namespace espalier::tools {
namespace {

using ::testing::HasSubstr;

class EmbeddingCommands : public NodeTool {
 protected:
  int embedding(std::vector<std::string> words) {
    words.insert(words.begin(), "embedding");
    words.insert(words.begin() + 2, {"--at", address});
    return tool.run(words);
  }
};

TEST_F(EmbeddingCommands, LoadReduceAndDrop) {
  std::vector<float> values(3 * 8);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i / 8 + 1);
  tool.input = npy_text(values, 8);
  ASSERT_EQ(embedding({"load", "items", "-"}), kOk) << tool.err();
  EXPECT_EQ(tool.out(), "loaded 3 rows of 8 values into embedding table 'items'\n");
  ASSERT_EQ(embedding({"reduce", "items", "0", "1", "2", "2"}), kOk) << tool.err();
  EXPECT_EQ(tool.out(), "9\n9\n9\n9\n9\n9\n9\n9\n");
  ASSERT_EQ(embedding({"reduce", "items", "0", "1", "--op", "mean", "--json"}), kOk) << tool.err();
  EXPECT_EQ(nlohmann::json::parse(tool.out()), nlohmann::json(std::vector<float>(8, 1.5)));
  EXPECT_EQ(embedding({"reduce", "items", "3"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("id 3 at place 0 is not below the table's 3 rows"));
  ASSERT_EQ(embedding({"info", "items"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr("rows        3, of 8 values of fp32: 32 bytes each\n"));
  ASSERT_EQ(embedding({"info", "items", "--json"}), kOk);
  const auto object = nlohmann::json::parse(tool.out());
  EXPECT_EQ(object["embedding"], "items");
  EXPECT_EQ(object["rows_gathered"], 6);
  ASSERT_EQ(run({"list"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr("embedding"));
  ASSERT_EQ(embedding({"drop", "items"}), kOk);
  EXPECT_EQ(tool.out(), "dropped embedding table 'items'\n");
  EXPECT_EQ(embedding({"info", "items"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has no embedding table 'items'"));
}

TEST_F(EmbeddingCommands, GenerateTheSameRowsOfASeed) {
  const auto load = [&](const std::string& name, const std::string& seed) {
    ASSERT_EQ(embedding({"load", name, "--generate", "5000", "--dimension", "64", "--seed", seed}),
              kOk)
        << tool.err();
    EXPECT_THAT(tool.out(), HasSubstr(", by seed " + seed + "\n"));
  };
  const auto row = [&](const std::string& name) {
    EXPECT_EQ(embedding({"reduce", name, "4999"}), kOk) << tool.err();
    return tool.out();
  };
  load("a", "7");
  load("b", "7");
  load("c", "8");
  EXPECT_EQ(row("a"), row("b"));
  EXPECT_NE(row("a"), row("c"));
}

TEST_F(EmbeddingCommands, SayWhatIsWrong) {
  EXPECT_EQ(embedding({"load", "t"}), kUsage);
  tool.input = "no file of NumPy's";
  EXPECT_EQ(embedding({"load", "t", "-"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("it is no NumPy file"));
  tool.input = npy_text({1, 2, 3}, 3);
  EXPECT_EQ(embedding({"load", "t", "-"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("no embedding table has rows of 3 values"));
  ASSERT_EQ(embedding({"load", "t", "--generate", "10", "--dimension", "8", "--type", "int8"}),
            kOk);
  tool.input = npy_text(std::vector<float>(16), 16);
  EXPECT_EQ(embedding({"load", "t", "-"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has rows of 8 values, and these have 16"));
  std::vector<float> values(16, 1);
  values[9] = 1e6;
  tool.input = npy_text(values, 8);
  EXPECT_EQ(embedding({"load", "t", "-"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("row 1, column 1"));
  ASSERT_EQ(tool.run({"map", "create", "--at", address, "m"}), kOk);
  EXPECT_EQ(embedding({"info", "m"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("map"));
  EXPECT_EQ(tool.run({"get", "--at", address, "--map", "t", "k"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("an embedding table"));
  EXPECT_EQ(embedding({"load", "u", "--generate", "1", "--type", "fp8"}), kUsage);
}

}  // namespace
}  // namespace espalier::tools
