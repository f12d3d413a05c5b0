// SPDX-License-Identifier: Apache-2.0
// espalier log dump: what it says of records of all kinds, and of bytes that are none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "catalog/redo_record.hpp"
#include "tools/testing/data_fixture.hpp"

namespace espalier::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LogDump : public DataTool {
 protected:
  int dump(std::vector<std::string> words = {}) {
    words.insert(words.begin(), {"log", "dump", "--data", dir()});
    return tool.run(words);
  }
  std::vector<nlohmann::json> dumped_json(std::vector<std::string> words = {}) {
    words.emplace_back("--json");
    static_cast<void>(dump(words));
    std::vector<nlohmann::json> found;
    std::istringstream lines(tool.out());
    for (std::string line; std::getline(lines, line);) found.push_back(nlohmann::json::parse(line));
    return found;
  }
};

/// The first that says this of an object's effect.
const nlohmann::json* find_effect(const std::vector<nlohmann::json>& all, const std::string& kind,
                                  const std::string& effect) {
  const auto found = std::ranges::find_if(all, [&](const nlohmann::json& each) {
    return each["kind"] == kind && each["effect"] == effect;
  });
  return found == all.end() ? nullptr : &*found;
}

TEST_F(LogDump, TellsWhatWasDoneToEachKind) {
  ASSERT_NO_FATAL_FAILURE(fill());
  EXPECT_EQ(dump(), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("another process uses the data folder"));
  stop();
  ASSERT_EQ(dump(), kOk) << tool.err();
  EXPECT_THAT(tool.out(), HasSubstr("1 map 'default' (1): create, form bytes "));
  EXPECT_THAT(tool.out(),
              HasSubstr(" map 'default' (1): put 'greeting', version 1, value bytes 5\n"));
  EXPECT_THAT(tool.out(), HasSubstr(" map 'default' (1): erase 'gone', version 3\n"));
  EXPECT_THAT(tool.out(), HasSubstr(" hash 'hashed\\n\\x1b[31m' (2): put 'k\\x00\\xff', version "));
  EXPECT_THAT(tool.out(), HasSubstr(": take, epoch 1, first 100, next 107\n"));
  EXPECT_THAT(tool.out(), HasSubstr(" sequencer: count 'counter', next 5\n"));
  EXPECT_THAT(tool.out(), HasSubstr(" table 'rows' (4): append, first row 0, rows 2, row bytes "));
  EXPECT_THAT(tool.out(), HasSubstr(" map 'dropped' (5): drop\n"));
  EXPECT_THAT(tool.out(), Not(HasSubstr("fault: ")));
  EXPECT_THAT(tool.out(), Not(HasSubstr("hello")));  // values are not printed

  const auto all = dumped_json();
  std::uint64_t sequence = 0;
  for (const nlohmann::json& each : all) {
    EXPECT_GE(each["sequence"], sequence);
    sequence = each["sequence"];
  }
  const nlohmann::json* const put = find_effect(all, "map", "put");
  ASSERT_NE(put, nullptr);
  EXPECT_EQ((*put)["name"], "default");
  EXPECT_EQ((*put)["key"], "greeting");
  EXPECT_EQ((*put)["value_bytes"], 5);
  const nlohmann::json* const hashed = find_effect(all, "hash", "put");
  ASSERT_NE(hashed, nullptr);
  EXPECT_EQ((*hashed)["key_hex"], "6b00ff");
  const nlohmann::json* const rows = find_effect(all, "table", "append");
  ASSERT_NE(rows, nullptr);
  EXPECT_EQ((*rows)["rows"], 2);
}

TEST_F(LogDump, ABatchIsALineForEachWrite) {
  {
    Store store = connect();
    auto map = *store.open_map("default");
    WriteBatch batch;
    batch.put("a", "1").put("b", "22").erase("c");
    ASSERT_TRUE(map.write(batch));
  }
  stop();
  const auto all = dumped_json({"--from", "2"});
  ASSERT_EQ(all.size(), 3u) << tool.out();
  EXPECT_EQ(all[0]["key"], "a");
  EXPECT_EQ(all[1]["value_bytes"], 2);
  EXPECT_EQ(all[2]["effect"], "erase");
  for (const auto& each : all) EXPECT_EQ(each["sequence"], 2);
}

TEST_F(LogDump, TellsThoseThatAreWanted) {
  ASSERT_NO_FATAL_FAILURE(fill());
  stop();
  const auto all = dumped_json();
  const auto some = dumped_json({"--from", "3", "--to", "4"});
  ASSERT_EQ(some.size(), 2u) << tool.out();
  EXPECT_EQ(some[0], all[2]);  // names of what was made before are known
  EXPECT_EQ(some[1], all[3]);
  EXPECT_EQ(dump({"--from", "100000"}), kOk);
  EXPECT_EQ(tool.out(), "");
  EXPECT_EQ(dump({"--from", "4", "--to", "3"}), kUsage);
  EXPECT_EQ(dump({"--from", "first"}), kUsage);
  EXPECT_EQ(tool.run({"log", "dump"}), kUsage);
  EXPECT_EQ(tool.run({"log", "dump", "--data", dir() + "/none"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("does not exist"));
}

// Whatever lies in a record: no byte of it reaches the terminal as it is, each line of JSON is one,
// and what is none is said to be none.
TEST_F(LogDump, HostileRecordsHarmNobody) {
  ASSERT_NO_FATAL_FAILURE(fill());
  stop();
  base::Random random(base::seed_from_environment(41));
  std::vector<std::string> records;
  for (std::uint8_t kind = 0; kind < 10; ++kind) {
    for (std::uint8_t type = 0; type < 22; ++type) {
      const std::uint64_t more = random.below(64);
      std::string record(sizeof(catalog::RedoHead) + more, '\0');
      for (char& byte : record) byte = static_cast<char>(random.below(256));
      const catalog::RedoHead head{record.size(), static_cast<std::uint32_t>(random.below(6)), kind,
                                   type, 0};
      std::memcpy(record.data(), &head, sizeof head);
      records.push_back(record);
    }
  }
  records.emplace_back();
  records.emplace_back("\x1b[2J");
  ASSERT_NO_FATAL_FAILURE(append(records));
  EXPECT_EQ(dump(), kFailed);
  const std::string text = tool.out();
  EXPECT_TRUE(std::ranges::all_of(
      text, [](char c) { return c == '\n' || static_cast<unsigned char>(c) >= 0x20; }));
  EXPECT_THAT(text, HasSubstr(": fault: 4 bytes that are no record: "));
  EXPECT_THAT(text, HasSubstr(" kind 9"));
  std::size_t faults = 0;
  for (const nlohmann::json& each : dumped_json()) faults += each.contains("fault") ? 1 : 0;
  EXPECT_GE(faults, 150u);
}

TEST_F(LogDump, DamageAndTornTailsAreNamed) {
  ASSERT_NO_FATAL_FAILURE(fill());
  stop();
  const std::string segment = segments().back();
  const std::string whole = bytes_of(segment);
  const std::size_t end = whole.find_last_not_of('\0');
  write(segment, whole.substr(0, end / log::kUnitBytes * log::kUnitBytes + 20));
  EXPECT_EQ(dump(), kOk) << tool.err();
  EXPECT_THAT(tool.err(), HasSubstr("nothing was acknowledged"));
  std::string changed = whole;
  changed[log::kBlocksBegin + 70] ^= 1;
  write(segment, changed);
  EXPECT_EQ(dump(), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("is damaged"));
  EXPECT_THAT(tool.err(), HasSubstr("offset 4096"));
}

}  // namespace
}  // namespace espalier::tools
