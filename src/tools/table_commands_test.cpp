// SPDX-License-Identifier: Apache-2.0
// The commands on tables, against a node in this process: from CSV to answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "node/metrics.hpp"
#include "tools/testing/node_fixture.hpp"

namespace espalier::tools {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class TableCommands : public NodeTool {
 protected:
  int table(std::vector<std::string> words) {
    words.insert(words.begin(), "table");
    words.insert(words.begin() + 2, {"--at", address});
    return tool.run(words);
  }
  std::string query(const std::string& text, std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), {"query", "--quiet", text});
    EXPECT_EQ(table(flags), kOk) << tool.err();
    return tool.out();
  }
  void make_sales() {
    ASSERT_EQ(table({"create", "sales",
                     "id i64 not null, shop char(3), price decimal(8,2), day date, note text(9)"}),
              kOk)
        << tool.err();
    tool.files.contents["sales.csv"] =
        "id,shop,price,day,note\n"
        "1,ab,1.50,2024-01-01,first\n"
        "2,ab,2.25,2024-01-02,\"\"\n"
        "3,cd,,2024-01-03,\n"
        "4,,4.00,,\"a,\"\"b\"\n";
    ASSERT_EQ(table({"load", "sales", "sales.csv"}), kOk) << tool.err();
    EXPECT_THAT(tool.out(), StartsWith("loaded 4 rows into table 'sales' in "));
  }
};

TEST_F(TableCommands, FromCsvToAnswers) {
  make_sales();
  EXPECT_EQ(query("select count(*), sum(price), count(price), min(day) from sales"),
            "count\tsum\tcount\tmin\n4\t7.75\t3\t2024-01-01\n");
  EXPECT_EQ(query("select id, price * 2 as twice from sales where price > 2 limit 5"),
            "id\ttwice\n2\t4.50\n4\t8.00\n");
  EXPECT_EQ(query("select shop, sum(price) as total from sales where id < 4 group by shop",
                  {"--format", "json"}),
            "{\"shop\":\"ab\",\"total\":3.75}\n{\"shop\":\"cd\",\"total\":null}\n");
  EXPECT_EQ(query("select note from sales where note like '%b'", {"--format", "csv"}),
            "note\n\"a,\"\"b\"\n");
  EXPECT_EQ(query("select id from sales where shop is null or price is null"), "id\n3\n4\n");
}

TEST_F(TableCommands, PulledAndPushedDownAnswersAreEqual) {
  make_sales();
  for (const char* text :
       {"select * from sales", "select distinct shop from sales",
        "select shop, count(*), avg(price) from sales group by shop",
        "select id from sales where price between 1 and 3 and not note is null"}) {
    EXPECT_EQ(query(text), query(text, {"--pull"})) << text;
  }
}

TEST_F(TableCommands, ExportsWhatWasLoaded) {
  make_sales();
  ASSERT_EQ(table({"export", "sales"}), kOk) << tool.err();
  EXPECT_EQ(tool.out(), tool.files.contents["sales.csv"]);
  ASSERT_EQ(table({"export", "sales", "--no-header", "--delimiter", "tab"}), kOk);
  EXPECT_THAT(tool.out(), StartsWith("1\tab\t1.50\t2024-01-01\tfirst\n"));
}

// The parser of command lines has a meaning of its own for words in brackets and for none at all.
TEST_F(TableCommands, TakesWordsAsTheyWereTyped) {
  const std::string name = "[a,b]";
  ASSERT_EQ(table({"create", name, "id i64 not null, note text(9)"}), kOk) << tool.err();
  tool.files.contents["[x]"] = "id,note\n1,[]\n2,\"[]\"\n3,\n";
  ASSERT_EQ(table({"load", name, "[x]", "--null", "[]"}), kOk) << tool.err();
  EXPECT_THAT(tool.out(), StartsWith("loaded 3 rows into table '[a,b]' in "));
  EXPECT_EQ(query("select id from \"[a,b]\" where note is null"), "id\n1\n");
  ASSERT_EQ(table({"export", name, "--null", "[]"}), kOk) << tool.err();
  EXPECT_EQ(tool.out(), "id,note\n1,[]\n2,\"[]\"\n3,\n");
  for (const std::vector<std::string>& none :
       {std::vector<std::string>{"--null", ""}, std::vector<std::string>{"--null="}}) {
    std::vector<std::string> words{"export", name};
    words.insert(words.end(), none.begin(), none.end());
    ASSERT_EQ(table(words), kOk) << tool.err();
    EXPECT_EQ(tool.out(), "id,note\n1,\n2,[]\n3,\"\"\n");
  }
  EXPECT_EQ(table({"export", "[c]"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has no table '[c]'"));
  EXPECT_EQ(table({"load", name, "[y]"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("cannot read [y]: "));
  EXPECT_EQ(table({"load", name, "[x]", "--skip-bad", "some"}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("'some' is not a whole number"));
  EXPECT_EQ(table({"load", name, "[x]", "--delimiter", ""}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("--delimiter '' is not one character"));
  EXPECT_EQ(table({"query", ""}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("there is no query"));
  EXPECT_EQ(table({"query", "[x]", "--format", ""}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("not ''"));
  EXPECT_EQ(table({"export", name, "--key-file", ""}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("No such file"));
}

/// Shares of the whole that a progress line has shown, in their order.
std::vector<int> shares_shown(const std::string& text) {
  std::vector<int> shares;
  for (std::size_t at = text.find(" %)"); at != std::string::npos; at = text.find(" %)", at + 1)) {
    shares.push_back(std::stoi(text.substr(text.rfind('(', at) + 1)));
  }
  return shares;
}

TEST_F(TableCommands, LoadTellsHowMuchOfTheFileIsRead) {
  ASSERT_EQ(table({"create", "wide", "id i64 not null, note text(1000)"}), kOk) << tool.err();
  std::string& text = tool.files.contents["wide.csv"];
  text = "id,note\n";
  for (int i = 0; i < 4000; ++i) text += std::to_string(i) + "," + std::string(200, 'x') + "\n";
  tool.err_is_terminal = true;
  tool.tick_ns = 500'000'000;
  ASSERT_EQ(table({"load", "wide", "wide.csv"}), kOk) << tool.err();
  const std::vector<int> shares = shares_shown(tool.err());
  ASSERT_GE(shares.size(), 4U) << tool.err();  // of 4 MB of rows, a MiB at a time
  EXPECT_TRUE(std::ranges::is_sorted(shares));
  EXPECT_LT(shares.front(), 50);
  EXPECT_EQ(shares.back(), 100);
  EXPECT_THAT(tool.err(), HasSubstr("wide.csv: 1,"));
  EXPECT_THAT(tool.err(), HasSubstr(" left"));
  // Of standard input nothing knows how much there is.
  tool.input = text;
  ASSERT_EQ(table({"load", "wide", "-"}), kOk) << tool.err();
  EXPECT_THAT(tool.err(), HasSubstr("standard input: 1,"));
  EXPECT_THAT(tool.err(), HasSubstr(" of ?, "));
  EXPECT_TRUE(shares_shown(tool.err()).empty()) << tool.err();
}

TEST_F(TableCommands, TellsWhatWasReadAndSent) {
  make_sales();
  ASSERT_EQ(table({"query", "--explain", "select count(*) from sales where price > 1"}), kOk);
  EXPECT_THAT(tool.err(), HasSubstr("filter: price > 1"));
  EXPECT_THAT(tool.err(), HasSubstr("count(*)"));
  EXPECT_THAT(tool.err(), HasSubstr("; 4 rows read beside the memory ("));
  EXPECT_THAT(tool.err(), HasSubstr("\nstate: scan 0 B, filter "));
  EXPECT_THAT(tool.err(), HasSubstr(", pack 64"));
  EXPECT_THAT(tool.err(), HasSubstr("\nrows: 0 B in buffers, "));
  EXPECT_THAT(tool.err(), EndsWith(" sent\n"));
}

TEST_F(TableCommands, ListsDescribesAndDrops) {
  make_sales();
  ASSERT_EQ(table({"create", "empty", "x double"}), kOk);
  ASSERT_EQ(table({"list"}), kOk);
  EXPECT_EQ(tool.out(), "empty\nsales\n");
  ASSERT_EQ(table({"describe", "sales", "--json"}), kOk);
  const auto object = nlohmann::json::parse(tool.out());
  EXPECT_EQ(object["rows"], 4);
  EXPECT_EQ(object["schema"],
            "id i64 not null, shop char(3), price decimal(8,2), day date, note text(9)");
  ASSERT_EQ(table({"describe", "sales"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr("column  id i64 not null\n"));
  EXPECT_EQ(query("select count(*), max(x) from empty"), "count\tmax\n0\tNULL\n");
  ASSERT_EQ(table({"drop", "sales"}), kOk);
  EXPECT_EQ(table({"query", "select * from sales"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has no table 'sales'"));
  EXPECT_EQ(table({"drop", "sales"}), kFailed);
}

TEST_F(TableCommands, StandBesideMapsInTheListOfAll) {
  make_sales();
  ASSERT_EQ(tool.run({"seq", "create", "orders", "--at", address}), kOk) << tool.err();
  ASSERT_EQ(tool.run({"list", "--at", address}), kOk) << tool.err();
  EXPECT_EQ(tool.out(), "map       default\ntable     sales\nsequencer orders\n");
  ASSERT_EQ(tool.run({"list", "--at", address, "--json"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr("{\"kind\":\"map\",\"name\":\"default\",\"id\":1,"));
  EXPECT_THAT(tool.out(), HasSubstr("{\"kind\":\"table\",\"name\":\"sales\",\"id\":2,"
                                    "\"entries\":4,\"memory_bytes\":"));
  EXPECT_EQ(tool.run({"list"}), kUsage);
}

TEST_F(TableCommands, StatsAndTopTellOfThem) {
  make_sales();
  ASSERT_EQ(query("select count(*) from sales"), "count\n4\n");
  EXPECT_EQ(table({"query", "select id * 9223372036854775807 from sales"}), kFailed);
  ASSERT_EQ(run({"stats"}), kOk) << tool.err();
  EXPECT_THAT(tool.out(), HasSubstr("\n\ntable       sales\nrows        4 of "));
  EXPECT_THAT(tool.out(), HasSubstr("0 running, 0 waiting, 1 ended, 1 failed, 0 refused\n"));
  EXPECT_THAT(tool.out(), HasSubstr("\nhelpers     "));
  ASSERT_EQ(run({"stats", "--table", "sales", "--json"}), kOk) << tool.err();
  const auto stats = nlohmann::json::parse(tool.out());
  EXPECT_EQ(stats["table"], "sales");
  EXPECT_EQ(stats["rows"], 4);
  EXPECT_EQ(stats["queries"]["ended"], 1);
  EXPECT_EQ(stats["queries"]["failed"], 1);
  EXPECT_GE(stats["rows_read"], 4);
  EXPECT_EQ(stats["rows_sent"], 1);
  EXPECT_GT(stats["bytes_sent"], 0);
  EXPECT_EQ(run({"stats", "--table", "default"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has no table 'default'"));
  EXPECT_EQ(run({"stats", "--table", "sales", "--map", "default"}), kUsage);
  ASSERT_EQ(run({"stats", "--json"}), kOk);
  const std::string text = tool.out();
  const auto last = nlohmann::json::parse(text.substr(text.rfind("{\"memory\"")));
  EXPECT_EQ(last["queries"]["ended"], 1);
  EXPECT_GE(last["helpers"]["threads"], 1);
  EXPECT_GE(last["helpers"]["steps"], 1);
  ASSERT_EQ(run({"top", "--once", "--json"}), kOk) << tool.err();
  const auto top = nlohmann::json::parse(tool.out());
  EXPECT_EQ(top["tables"][0]["table"], "sales");
  EXPECT_EQ(top["tables"][0]["rows"], 4);
  EXPECT_GT(top["tables"][0]["queries_per_s"], 0);
  EXPECT_GT(top["memory"]["table_bytes"], 0);
  EXPECT_EQ(top["queries"]["ended"], 1);
  EXPECT_GE(top["helpers"]["threads"], 1);
  ASSERT_EQ(run({"top", "--once"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr("  sales\n"));
}

TEST_F(TableCommands, ShareTheirNamesWithMaps) {
  make_sales();
  EXPECT_EQ(table({"create", "default", "a i64"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has a map 'default' already"));
  EXPECT_EQ(run_map({"create", "sales"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has a table 'sales' already"));
  const std::string at = " of the node at " + address;
  EXPECT_EQ(table({"describe", "default"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("'default'" + at + " is a map"));
  EXPECT_EQ(table({"drop", "default"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("'default'" + at + " is a map"));
  EXPECT_EQ(run({"get", "--map", "sales", "a"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("'sales'" + at + " is a table"));
  EXPECT_EQ(run_map({"drop", "sales"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("'sales'" + at + " is a table"));
  EXPECT_THAT(tool.err(), HasSubstr("espalier list shows"));
  ASSERT_EQ(run_map({"list"}), kOk);
  EXPECT_EQ(tool.out(), "default\n");
}

TEST_F(TableCommands, WhatIsWrongIsToldWithItsPlace) {
  make_sales();
  EXPECT_EQ(table({"create", "t", "a i64, b whatever"}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("the schema is wrong at 10"));
  EXPECT_EQ(table({"create", "sales", "a i64"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has a table 'sales' already"));
  EXPECT_EQ(table({"query", "select id from sales order by id"}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("order by is not supported"));
  EXPECT_EQ(table({"query", "select colour from sales"}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("no column colour"));
  EXPECT_EQ(table({"query", "select id * 9223372036854775807 from sales"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("overflow"));
  EXPECT_EQ(tool.out(), "") << "no row came, and so no header";
  EXPECT_EQ(table({"query", "--pull", "select id * 9223372036854775807 from sales"}), kFailed);
  EXPECT_EQ(tool.out(), "");
  EXPECT_EQ(query("select id, note from sales where id > 9"), "id\tnote\n");
  EXPECT_EQ(query("select id from sales where id > 9", {"--format", "csv"}), "id\n");
  EXPECT_EQ(query("select id from sales where id > 9", {"--format", "json"}), "");
  tool.files.contents["bad.csv"] = "id,price\n5,1.00\nsix,2.00\n7,3.001\n";
  EXPECT_EQ(table({"load", "sales", "bad.csv"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("bad.csv: line 3, column id"));
  EXPECT_EQ(query("select count(*) from sales"), "count\n4\n");  // nothing of that append
  EXPECT_EQ(table({"load", "sales", "bad.csv", "--skip-bad", "2"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr("loaded 1 rows"));
  EXPECT_THAT(tool.out(), HasSubstr("2 bad lines left out"));
  EXPECT_THAT(tool.err(), Not(HasSubstr("more bad")));
  for (int i = 0; i < 22; ++i) tool.files.contents["bad.csv"] += "x,1.00\n";
  EXPECT_EQ(table({"load", "sales", "bad.csv", "--skip-bad", "30"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr("24 bad lines left out"));
  EXPECT_THAT(tool.err(), HasSubstr("bad.csv: line 22, column id"));
  EXPECT_THAT(tool.err(), Not(HasSubstr("bad.csv: line 23")));
  EXPECT_THAT(tool.err(), EndsWith("bad.csv: 4 more bad lines were left out\n"));
  EXPECT_EQ(table({"load", "sales", "bad.csv", "--delimiter", ";;"}), kUsage);
  EXPECT_EQ(table({"query", "select id from sales", "--format", "xml"}), kUsage);
}

TEST_F(TableCommands, SearchWithRegularExpressions) {
  make_sales();
  EXPECT_EQ(query("select id from sales where note ~ '^f.*t$' or shop ~* 'C'"), "id\n1\n3\n");
  EXPECT_EQ(query("select id from sales where note !~ 't'"), "id\n2\n4\n");
  for (const std::string text : {"select id from sales where note ~ '^[af]'"}) {
    EXPECT_EQ(query(text), query(text, {"--pull"}));
  }
  EXPECT_EQ(table({"query", "select id from sales where note ~ '[a'"}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("the regular expression is wrong at 1, '[a': missing ]"));
}

class EncryptedTableCommands : public TableCommands {
 protected:
  std::string key_file(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string path = (folder / name).string();
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  void make_secrets(const std::string& key) {
    ASSERT_EQ(table({"create", "secrets", "id i64 not null, name text(20)", "--encrypted"}), kOk)
        << tool.err();
    EXPECT_THAT(tool.out(), StartsWith("made encrypted table 'secrets'"));
    tool.files.contents["secrets.csv"] = "id,name\n1,alpha\n2,beta\n3,\n";
    ASSERT_EQ(table({"load", "secrets", "secrets.csv", "--key-file", key}), kOk) << tool.err();
  }
};

TEST_F(EncryptedTableCommands, FromCsvToAnswers) {
  const std::string key = key_file("key", "000102030405060708090a0b0c0d0e0f\n");
  make_secrets(key);
  ASSERT_EQ(table({"load", "secrets", "secrets.csv", "--key-file", key}), kOk) << tool.err();
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--key-file", key},
        std::vector<std::string>{"--key-file", key, "--encrypt-result"}}) {
    EXPECT_EQ(query("select count(*), sum(id), min(name) from secrets", flags),
              "count\tsum\tmin\n6\t12\talpha\n");
    EXPECT_EQ(query("select name from secrets where name ~ 'a$' limit 2", flags),
              "name\nalpha\nbeta\n");
  }
  ASSERT_EQ(table({"export", "secrets", "--key-file", key}), kOk) << tool.err();
  EXPECT_EQ(tool.out(), "id,name\n1,alpha\n2,beta\n3,\n1,alpha\n2,beta\n3,\n");
  ASSERT_EQ(table({"describe", "secrets"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr("cipher  AES-128-CTR\n"));
  ASSERT_EQ(table({"query", "--explain", "--key-file", key, "select id from secrets"}), kOk);
  EXPECT_THAT(tool.err(), StartsWith("decrypt: AES-128-CTR"));
  // Another key is no error, and gives another answer.
  const std::string other = key_file("other", std::string(32, 'f'));
  EXPECT_EQ(query("select count(*) from secrets where id = 1", {"--key-file", other}),
            "count\n0\n");
}

TEST_F(EncryptedTableCommands, AResultOfAPlainTableIsEncryptedToo) {
  make_sales();
  const std::string key = key_file("key", std::string(32, 'A'));
  EXPECT_EQ(query("select id from sales", {"--key-file", key, "--encrypt-result"}),
            "id\n1\n2\n3\n4\n");
}

TEST_F(EncryptedTableCommands, KeysTravelInClearOnlyWhereThatIsAllowed) {
  const std::string key = key_file("key", std::string(32, '1'));
  make_secrets(key);
  const std::string socket = address;
  tool.connect = [socket](const std::string&, const StoreOptions& options) {
    return Store::connect(socket, options);
  };
  address = "roce://127.0.0.1/1";
  EXPECT_EQ(table({"query", "select id from secrets", "--key-file", key}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("the key would travel in clear"));
  EXPECT_EQ(query("select id from secrets limit 1", {"--key-file", key, "--allow-keys-in-clear"}),
            "id\n1\n");
  // What is decrypted here needs no key there, and a load sends cipher text.
  EXPECT_EQ(table({"export", "secrets", "--key-file", key}), kOk) << tool.err();
  EXPECT_EQ(query("select id from secrets limit 1", {"--key-file", key, "--pull"}), "id\n1\n");
  EXPECT_EQ(table({"load", "secrets", "secrets.csv", "--key-file", key}), kOk) << tool.err();
}

TEST_F(EncryptedTableCommands, KeysComeFromFilesThatNobodyElseReads) {
  const std::string text = "000102030405060708090a0b0c0d0e0f";
  make_secrets(key_file("key", text));
  const auto refused = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"query", "select id from secrets"});
    EXPECT_NE(table(flags), kOk);
    return tool.err();
  };
  EXPECT_THAT(refused({}), HasSubstr("table 'secrets' is encrypted"));
  EXPECT_THAT(refused({"--key-file", key_file("open", text, 0644)}),
              HasSubstr("has mode 0644, and others may read it"));
  EXPECT_THAT(refused({"--key-file", key_file("group", text, 0640)}), HasSubstr("has mode 0640"));
  EXPECT_THAT(refused({"--key-file", key_file("short", text.substr(1))}),
              HasSubstr("has not 32 hexadecimal digits"));
  EXPECT_THAT(refused({"--key-file", key_file("long", text + "00")}),
              HasSubstr("has not 32 hexadecimal digits"));
  EXPECT_THAT(refused({"--key-file", key_file("bad", "g" + text.substr(1))}),
              HasSubstr("has not 32 hexadecimal digits"));
  EXPECT_THAT(refused({"--key-file", (folder / "none").string()}),
              HasSubstr("No such file or directory"));
  EXPECT_THAT(refused({"--key-file", folder.path().string()}), HasSubstr("is no file"));
  EXPECT_THAT(refused({"--key-file", key_file("key", text), "--pull", "--encrypt-result"}),
              HasSubstr("there is no result to encrypt"));
  EXPECT_THAT(refused({"--encrypt-result"}), HasSubstr("--encrypt-result needs a key"));
  EXPECT_EQ(table({"load", "secrets", "secrets.csv"}), kUsage);
  make_sales();
  EXPECT_EQ(table({"load", "sales", "sales.csv", "--key-file", key_file("key", text)}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("is not encrypted, and takes no key"));
}

/// A node whose memory may be read, and how its tables were read.
class OneSidedTableCommands : public EncryptedTableCommands {
 protected:
  OneSidedTableCommands() {
    config.node.fabric = "shm:" + (folder / "f").string();
    config.node.one_sided = true;
  }
  void SetUp() override {
    EncryptedTableCommands::SetUp();
    address = config.node.fabric;
  }
  /// Readings by READs, and those that asked the node for rows.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> readings() const {
    std::pair<std::uint64_t, std::uint64_t> found;
    for (const node::OffloadNumbers& offload : node::numbers_of(*node).offloads) {
      if (offload.id == wire::OffloadId::one_sided_table) found.first = offload.requests;
      if (offload.id == wire::OffloadId::table_read) found.second = offload.requests;
    }
    return found;
  }
};

TEST_F(OneSidedTableCommands, PullAndExportReadTheNodesMemory) {
  make_sales();
  const std::string key = key_file("key", "000102030405060708090a0b0c0d0e0f\n");
  make_secrets(key);
  const std::string text = "select shop, count(*), avg(price) from sales group by shop";
  const std::string pushed = query(text);
  EXPECT_EQ(query(text, {"--pull"}), pushed);
  EXPECT_EQ(readings(), std::pair(std::uint64_t{0}, std::uint64_t{1}));
  EXPECT_EQ(query(text, {"--pull", "--one-sided"}), pushed);
  EXPECT_EQ(readings(), std::pair(std::uint64_t{1}, std::uint64_t{1}));
  ASSERT_EQ(table({"export", "sales", "--one-sided"}), kOk) << tool.err();
  EXPECT_EQ(tool.out(), tool.files.contents["sales.csv"]);
  EXPECT_EQ(query("select id, name from secrets", {"--pull", "--one-sided", "--key-file", key}),
            "id\tname\n1\talpha\n2\tbeta\n3\tNULL\n");
  EXPECT_EQ(readings(), std::pair(std::uint64_t{3}, std::uint64_t{1}));
  EXPECT_EQ(table({"query", text, "--one-sided"}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("Give --pull too."));
  address = "unix:" + config.node.socket;
  EXPECT_EQ(table({"export", "sales", "--one-sided"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("does not offer its memory to be read"));
}

TEST_F(TableCommands, AreOfNodesOnly) {
  EXPECT_EQ(tool.run({"table", "list"}), kUsage);
  EXPECT_EQ(tool.run({"table", "list", "--at", "embedded"}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("'embedded' is no address of a node"));
}

}  // namespace
}  // namespace espalier::tools
