// SPDX-License-Identifier: Apache-2.0
// The commands on embedding tables, against a node in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "kinds/embedding/testing/ranking_files.hpp"
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

TEST_F(EmbeddingCommands, ReduceByWeightsAndToAnInnerProduct) {
  std::vector<float> values(3 * 8);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i / 8 + 1);
  tool.input = npy_text(values, 8);
  ASSERT_EQ(embedding({"load", "items", "-"}), kOk) << tool.err();
  const auto reduced = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"reduce", "items"});
    EXPECT_EQ(embedding(words), kOk) << tool.err();
    return tool.out();
  };
  EXPECT_EQ(reduced({"0", "2", "--weights", "-1,0.5"}), "0.5\n0.5\n0.5\n0.5\n0.5\n0.5\n0.5\n0.5\n");
  const std::string vector = "--vector=-1,1,0,0,0,0,0,0.25";
  EXPECT_EQ(reduced({"1", "2", "--op", "inner-product", vector}), "1.25\n");
  EXPECT_EQ(reduced({"1", "2", "--op", "inner-product", vector, "--weights", "2,0"}), "1\n");
  const auto fails = [&](std::vector<std::string> words, int code, const std::string& why) {
    words.insert(words.begin(), {"reduce", "items", "1", "2"});
    EXPECT_EQ(embedding(words), code);
    EXPECT_THAT(tool.err(), HasSubstr(why));
  };
  fails({"--weights", "1"}, kFailed, "there are not as many weights as ids");
  fails({"--op", "max", "--weights", "1,1"}, kFailed, "only sum and inner product take weights");
  fails({"--vector", "1"}, kFailed, "only the inner product takes a vector");
  fails({"--op", "inner-product"}, kFailed, "the vector has not as many values as a row");
  fails({"--weights", "1,x"}, kUsage, "'x' is not a number of single precision");
}

TEST_F(EmbeddingCommands, RenameTables) {
  for (const char* const name : {"items", "items.new"}) {
    ASSERT_EQ(embedding({"load", name, "--generate", "10", "--dimension", "8"}), kOk);
  }
  ASSERT_EQ(embedding({"load", "items.new", "--generate", "5", "--dimension", "8"}), kOk);
  const auto rows_of = [&](const char* name) {
    EXPECT_EQ(embedding({"info", name, "--json"}), kOk) << tool.err();
    return nlohmann::json::parse(tool.out())["rows"].get<int>();
  };
  EXPECT_EQ(embedding({"rename", "items.new", "items"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has an object 'items' already"));
  EXPECT_THAT(tool.err(), HasSubstr("--exchange"));
  EXPECT_EQ(embedding({"rename", "items", "items"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has this name already"));
  EXPECT_EQ(embedding({"rename", "items", "none", "--exchange"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has no embedding table 'none'"));
  EXPECT_EQ(embedding({"rename", "none", "items", "--exchange"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has no embedding table 'none'"));
  EXPECT_EQ(embedding({"rename", "items", "x", "--exchange", "--replace"}), kUsage);
  ASSERT_EQ(embedding({"rename", "items.new", "items", "--exchange"}), kOk) << tool.err();
  EXPECT_EQ(tool.out(), "exchanged the names of embedding table 'items.new' and 'items'\n");
  EXPECT_EQ(rows_of("items"), 15);
  EXPECT_EQ(rows_of("items.new"), 10);
  ASSERT_EQ(embedding({"rename", "items.new", "items", "--replace", "--json"}), kOk);
  EXPECT_EQ(nlohmann::json::parse(tool.out())["to"], "items");
  EXPECT_EQ(rows_of("items"), 10);
  ASSERT_EQ(embedding({"rename", "items", "things"}), kOk);
  EXPECT_EQ(tool.out(), "renamed embedding table 'items' to 'things'\n");
  EXPECT_EQ(rows_of("things"), 10);
}

/// Of a node whose memory may be read.
class OneSidedEmbeddingCommands : public EmbeddingCommands {
 protected:
  OneSidedEmbeddingCommands() {
    config.node.fabric = "shm:" + (folder / "f").string();
    config.node.one_sided = true;
  }
  void SetUp() override {
    EmbeddingCommands::SetUp();
    address = config.node.fabric;
  }
};

TEST_F(OneSidedEmbeddingCommands, ReduceReadsTheNodesMemory) {
  ASSERT_EQ(embedding({"load", "items", "--generate", "1000", "--dimension", "8"}), kOk)
      << tool.err();
  const auto reduced = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"reduce", "items", "3", "999", "3"});
    EXPECT_EQ(embedding(words), kOk) << tool.err();
    return tool.out();
  };
  const auto gathered = [&] {
    EXPECT_EQ(embedding({"info", "items", "--json"}), kOk);
    return nlohmann::json::parse(tool.out())["rows_gathered"].get<int>();
  };
  const std::string by_node = reduced({});
  EXPECT_EQ(gathered(), 3);
  EXPECT_EQ(reduced({"--one-sided"}), by_node);
  EXPECT_EQ(gathered(), 3) << "the node has read rows for it";
  EXPECT_EQ(embedding({"reduce", "items", "1000", "--one-sided"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("id 1000 at place 0 is not below the table's 1000 rows"));
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

// The node has 64 MiB, and the rows would take 256.
TEST_F(EmbeddingCommands, LoadSaysHowFarItCameWhereMemoryEnds) {
  EXPECT_EQ(embedding({"load", "big", "--generate", "1000000", "--dimension", "64"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("append to embedding table 'big' behind "));
  EXPECT_THAT(tool.err(), HasSubstr("The memory limit is reached"));
  ASSERT_EQ(embedding({"info", "big", "--json"}), kOk);
  const auto rows = nlohmann::json::parse(tool.out())["rows"].get<std::uint64_t>();
  EXPECT_GT(rows, 0u);
  ASSERT_EQ(embedding({"reduce", "big", std::to_string(rows - 1)}), kOk) << tool.err();
  ASSERT_EQ(embedding({"drop", "big"}), kOk);
}

TEST_F(EmbeddingCommands, BuildGroupsOfLists) {
  ASSERT_EQ(embedding({"load", "items", "--generate", "20000", "--dimension", "64"}), kOk);
  tool.files.contents["lists"] = "1 2 3\n1 2 3 4\n8 9\n1 2 3\n1 2 3\n8 9\n1 2 3\n8 9\n5 6 7\n";
  tool.files.contents["others"] = "1 2 3 9\n8 9 19999 19999\n";
  ASSERT_EQ(embedding({"build", "items", "lists", "--held-out", "others"}), kOk) << tool.err();
  EXPECT_THAT(tool.out(), HasSubstr("embedding table 'items': 3 groups of 9 rows, 16 sums in "));
  EXPECT_THAT(tool.out(), HasSubstr("held out, by seed 1: 5 rows read for 8 ids, 37.5 % saved\n"));
  EXPECT_THAT(tool.out(), HasSubstr("cache lines: 28 read for 32, 12.5 % saved; of renumbered ids "
                                    "20, 37.5 %\n"));
  ASSERT_EQ(embedding({"reduce", "items", "1", "2", "3", "9"}), kOk);
  ASSERT_EQ(embedding({"info", "items"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr("groups      3, of 9 rows: "));
  EXPECT_THAT(tool.out(), HasSubstr("saved       2 rows, by 1 sums\n"));
  tool.files.contents["groups"] = "8 9\n4 5\n";
  ASSERT_EQ(embedding({"build", "items", "others", "--groups", "groups", "--json"}), kOk);
  const auto given = nlohmann::json::parse(tool.out());
  EXPECT_EQ(given["groups"], 2);
  EXPECT_EQ(given["sums"], 2);
  EXPECT_EQ(given["held_out_rows"], 7);
  EXPECT_EQ(given["held_out_lines"], 7 * 4 + 8);
  EXPECT_EQ(given["lines_saved"], 1 - 36.0 / 32);
  EXPECT_EQ(given["lines_saved_renumbered"], 1 - 28.0 / 32);
  ASSERT_EQ(embedding({"build", "items", "--generate", "--seed", "3", "--json"}), kOk)
      << tool.err();
  const auto made = nlohmann::json::parse(tool.out());
  EXPECT_GT(made["saved"], 0.02);
  EXPECT_GT(made["groups"], 100);
  EXPECT_EQ(made["seed"], 3);
  tool.files.contents["train"] = "1 20000 2 5 2\n5 2 3\n1 2 3 4\n";
  tool.files.contents["part"] = "0 0 0 0\n";
  ASSERT_EQ(embedding({"build", "items", "train", "--format", "merci", "--held-out", "train",
                       "--partition", "part", "--group-rows", "2", "--json"}),
            kOk)
      << tool.err();
  EXPECT_EQ(nlohmann::json::parse(tool.out())["sums"], 1);
  EXPECT_EQ(nlohmann::json::parse(tool.out())["held_out_rows"], 5 + 2);
}

TEST_F(EmbeddingCommands, BuildShowsOnATerminalHowFarItHasCome) {
  ASSERT_EQ(embedding({"load", "items", "--generate", "20000", "--dimension", "64"}), kOk);
  std::string& lists = tool.files.contents["lists"];
  for (int i = 0; i < 5000; ++i) {
    const int first = i % 1000 * 3;
    lists += std::to_string(first) + " " + std::to_string(first + 1) + " " +
             std::to_string(first + 2) + "\n";
  }
  ASSERT_EQ(embedding({"build", "items", "lists"}), kOk) << tool.err();
  EXPECT_EQ(tool.err(), "") << "it is no terminal";
  tool.err_is_terminal = true;
  tool.tick_ns = 400'000'000;
  ASSERT_EQ(embedding({"build", "items", "lists"}), kOk) << tool.err();
  for (const char* const step : {"reading lists: 1,", "finding communities: ", "making groups: "}) {
    EXPECT_THAT(tool.err(), HasSubstr(step));
  }
  EXPECT_TRUE(tool.err().ends_with("\r\x1b[K")) << tool.err();
}

TEST_F(EmbeddingCommands, RankQueriesByModels) {
  ASSERT_EQ(embedding({"load", "a", "--generate", "20", "--dimension", "8"}), kOk);
  ASSERT_EQ(embedding({"load", "b", "--generate", "20", "--dimension", "8"}), kOk);
  embedding::RankingParts parts;
  base::Random random(1);
  parts.draw(random);
  tool.files.contents["ads.model"] = parts.file();
  ASSERT_EQ(embedding({"model", "ads", "ads.model"}), kOk) << tool.err();
  EXPECT_EQ(tool.out(),
            "made model 'ads': 5 dense features, 2 embedding tables of 8 values, 1 outputs\n");
  const std::string query = "1 2 3 4 5 | 1 19 | 2\n";
  tool.files.contents["queries"] = query + "0 0 0 0 1e-3 | | 7";
  ASSERT_EQ(embedding({"infer", "ads", "queries"}), kOk) << tool.err();
  const std::string ranks = tool.out();
  EXPECT_EQ(std::ranges::count(ranks, '\n'), 2);
  const std::string first = ranks.substr(0, ranks.find('\n') + 1);
  // More than a request takes.
  std::string many;
  std::string wanted;
  for (int i = 0; i < 1000; ++i) {
    many += query;
    wanted += first;
  }
  tool.input = many;
  ASSERT_EQ(embedding({"infer", "ads"}), kOk) << tool.err();
  EXPECT_EQ(tool.out(), wanted);
  ASSERT_EQ(embedding({"infer", "ads", "queries", "--json"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr("]\n["));
  EXPECT_EQ(embedding({"model", "ads", "ads.model"}), kFailed);
  ASSERT_EQ(embedding({"model", "ads", "ads.model", "--replace", "--json"}), kOk) << tool.err();
  EXPECT_EQ(nlohmann::json::parse(tool.out())["tables"], 2);
  tool.files.contents["half.model"] = parts.file().substr(0, 1000);
  EXPECT_EQ(embedding({"model", "ads", "half.model", "--replace"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("half.model: the file has 1000 bytes"));
  ASSERT_EQ(embedding({"infer", "ads", "queries"}), kOk) << "it is there still: " << tool.err();
  // Of which 256 lines would have an answer that is too long.
  parts.top.back() = 1000;
  parts.draw(random);
  tool.files.contents["wide.model"] = parts.file();
  ASSERT_EQ(embedding({"model", "wide", "wide.model"}), kOk) << tool.err();
  tool.input = many;
  ASSERT_EQ(embedding({"infer", "wide"}), kOk) << tool.err();
  EXPECT_EQ(std::ranges::count(tool.out(), '\n'), 1000);
  tool.files.contents["queries"] = query + "1 2 3 4 5 | 20 | 2\n";
  EXPECT_EQ(embedding({"infer", "ads", "queries"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("a: id 20 at place 2 is not below the table's 20 rows"));
  ASSERT_EQ(embedding({"drop", "ads"}), kOk);
  EXPECT_EQ(tool.out(), "dropped model 'ads'\n");
  EXPECT_EQ(embedding({"infer", "none", "queries"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has no model 'none'"));
  EXPECT_EQ(embedding({"infer", "a", "queries"}), kFailed);
  EXPECT_EQ(embedding({"model", "other", "queries"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("this is no file of a model"));
}

TEST_F(EmbeddingCommands, SayWhatIsWrongWithGroups) {
  ASSERT_EQ(embedding({"load", "items", "--generate", "10", "--dimension", "8"}), kOk);
  const auto fails = [&](std::vector<std::string> words, int code, const std::string& why) {
    words.insert(words.begin(), {"build", "items"});
    EXPECT_EQ(embedding(words), code);
    EXPECT_THAT(tool.err(), HasSubstr(why));
  };
  tool.files.contents["lists"] = "1 2\n3 10\n";
  fails({}, kUsage, "Give LISTS, --generate or --groups FILE.");
  fails({"lists", "--generate"}, kUsage, "Give LISTS, --generate or --groups FILE.");
  fails({"lists", "--group-rows", "9"}, kUsage, "--group-rows is 2 to 8");
  fails({"lists", "--ratio", "101"}, kUsage, "--ratio is 0 to 100");
  fails({"lists"}, kFailed, "lists: line 2: 10 is no id of the table's 10 rows");
  fails({"lists", "--format", "merci"}, kFailed, "lists: line 1: this is no file of MERCI's");
  fails({"none"}, kFailed, "cannot read none");
  fails({"--generate"}, kFailed, "lists are generated for 256 rows or more");
  tool.files.contents["some"] = "1 2\n1 2\n1 2\n1 2\n1 2\n1 2\n1 2\n1 2\n";
  tool.files.contents["groups"] = "3 4\n";
  ASSERT_EQ(embedding({"build", "items", "--groups", "groups"}), kOk) << tool.err();
  fails({"some", "--ratio", "0"}, kFailed,
        "no groups come of it, and embedding table 'items' is left as it is");
  // Of other rows than those that are held out; given groups are kept all the same.
  tool.files.contents["others"] = "1 3\n2 4\n5\n";
  fails({"some", "--held-out", "others", "--ratio", "10"}, kFailed,
        "the groups save no row of the held-out lists, and embedding table 'items' is left as it");
  ASSERT_EQ(embedding({"info", "items"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr("groups      1, of 2 rows: "));
  tool.files.contents["groups"] = "6 7\n";
  ASSERT_EQ(embedding({"build", "items", "others", "--groups", "groups"}), kOk) << tool.err();
  tool.files.contents["groups"] = "1 2\n2 3\n";
  fails({"--groups", "groups"}, kFailed, "groups: id 2 at place 2 is in a group already");
  EXPECT_EQ(embedding({"build", "missing", "lists"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has no embedding table 'missing'"));
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
