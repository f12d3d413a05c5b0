// SPDX-License-Identifier: Apache-2.0
// espalier check --data and serve --accept-loss-from: what is said of data folders that are good,
// torn, damaged, another's, in use, or none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "log/block_reader.hpp"
#include "tools/testing/data_fixture.hpp"

namespace espalier::tools {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

/// A block of a segment, as the test reads it.
struct BlockPlace {
  std::uint64_t offset;
  std::uint64_t bytes;
  std::uint64_t first;  // sequence
  std::uint64_t next;
  std::uint64_t durable;
};

class CheckData : public DataTool {
 protected:
  int check(std::vector<std::string> words = {}) {
    words.insert(words.begin(), {"check", "--data", dir()});
    return tool.run(words);
  }
  /// The lines of --json, the last of which is that of the folder.
  std::vector<nlohmann::json> objects() {
    static_cast<void>(check({"--json"}));
    std::vector<nlohmann::json> found;
    std::istringstream lines(tool.out());
    for (std::string line; std::getline(lines, line);) found.push_back(nlohmann::json::parse(line));
    return found;
  }
  nlohmann::json report() {
    const auto all = objects();
    return all.empty() ? nlohmann::json() : all.back();
  }

  /// The blocks of a segment that begins at this sequence.
  static std::vector<BlockPlace> blocks_in(const std::string& path) {
    const std::string bytes = bytes_of(path);
    const auto whole = std::as_bytes(std::span(bytes));
    log::SegmentHeader header{};
    std::memcpy(&header, bytes.data(), sizeof header);
    std::vector<BlockPlace> found;
    for (std::uint64_t offset = log::kBlocksBegin; offset < whole.size();) {
      const auto block = log::read_block(header, offset, whole.subspan(offset));
      if (!block) break;
      const log::BlockHeader& of = block->header();
      found.push_back({offset, of.block_bytes, of.first_sequence, block->next(), of.durable});
      offset += of.block_bytes;
    }
    return found;
  }
  /// One segment with a block for each put.
  void put_in_blocks(int puts) {
    Store store = connect();
    auto map = *store.open_map("default");
    for (int i = 0; i < puts; ++i) ASSERT_TRUE(map.put("key " + std::to_string(i), "value"));
    stop();
  }
};

TEST_F(CheckData, FindsNoFaultInAGoodFolderAndChangesNothing) {
  ASSERT_NO_FATAL_FAILURE(fill());
  stop();
  std::vector<std::pair<std::string, std::string>> before;
  for (const auto& entry : fs::recursive_directory_iterator(dir())) {
    if (entry.is_regular_file()) {
      before.emplace_back(entry.path().string(), bytes_of(entry.path().string()));
    }
  }
  ASSERT_EQ(check(), kOk) << tool.err();
  EXPECT_THAT(tool.out(), HasSubstr("map 'default': 1 entry, "));
  EXPECT_THAT(tool.out(), HasSubstr("hash 'hashed\\n\\x1b[31m': 1 entry, "));
  EXPECT_THAT(tool.out(), HasSubstr("table 'rows': 2 entries, "));
  EXPECT_THAT(tool.out(), HasSubstr("sequencer 'numbers': "));
  EXPECT_THAT(tool.out(), Not(HasSubstr("dropped")));
  EXPECT_THAT(tool.out(), HasSubstr("; no damage found\n"));
  EXPECT_THAT(tool.out(), Not(HasSubstr("fault:")));
  EXPECT_EQ(tool.err(), "");
  const auto all = objects();
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0]["name"], "default");
  EXPECT_EQ(all[0]["entries"], 1);
  EXPECT_TRUE(all[0]["faults"].empty());
  EXPECT_EQ(all[4]["good"], true);
  EXPECT_EQ(all[4]["objects"], 4);
  EXPECT_FALSE(all[4].contains("tail"));
  EXPECT_EQ(all[4]["next_sequence"], all[4]["records"].get<std::uint64_t>() + 1);
  for (const auto& [path, bytes] : before) EXPECT_TRUE(bytes_of(path) == bytes) << path;
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(dir()))
    files += entry.is_regular_file();
  EXPECT_EQ(files, before.size());
  ASSERT_NO_FATAL_FAILURE(start());  // and a node has it all
  EXPECT_TRUE(connect().open_map("default")->get("greeting")->has_value());
}

TEST_F(CheckData, FoldersThatAreNoneAreNamed) {
  EXPECT_EQ(check(), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("another process uses the data folder"));
  stop();
  EXPECT_EQ(tool.run({"check", "--data", dir() + "/none"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("does not exist"));
  EXPECT_EQ(tool.run({"check", "--data", dir() + "/store"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("is no folder"));
  EXPECT_EQ(tool.run({"check", "--data", folder.string()}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("is no data folder of a node"));
  EXPECT_FALSE(fs::exists(folder / "lock"));
  fs::rename(folder / "data/lock", folder / "kept");
  EXPECT_EQ(check(), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has no file 'lock'"));
  fs::rename(folder / "kept", folder / "data/lock");

  const std::string store = bytes_of(dir() + "/store");
  std::string other = store;
  other[20] ^= 1;  // its number
  write(dir() + "/store", other);
  EXPECT_EQ(check(), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("Put back the file 'store'"));
  fs::remove(dir() + "/store");
  log::PosixFolder again(dir());
  ASSERT_TRUE(log::open_store_file(again, 7));
  EXPECT_EQ(check(), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("that of another store"));
  write(dir() + "/store", store);
  EXPECT_EQ(check(), kOk) << tool.err();

  EXPECT_EQ(check({"words.txt"}), kUsage);
  EXPECT_EQ(check({"--at", address}), kUsage);
  EXPECT_EQ(check({"--map", "default"}), kUsage);
  EXPECT_EQ(check({"--node-bytes", "512"}), kUsage);
  EXPECT_EQ(check({"--strict"}), kUsage);
  EXPECT_EQ(check({"--memory-max", "2M"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("--memory-max"));
}

// A log cut at the border of blocks is identical to one that ended there; so it is a valid,
// shorter log.
TEST_F(CheckData, AShorterLogHasFewerRecords) {
  ASSERT_NO_FATAL_FAILURE(put_in_blocks(6));
  const std::string segment = segments().back();
  const std::string whole = bytes_of(segment);
  const std::vector<BlockPlace> blocks = blocks_in(segment);
  ASSERT_GE(blocks.size(), 7u);  // and the mark of the end
  const std::uint64_t first = blocks.front().first;
  for (const BlockPlace& block : blocks) {
    SCOPED_TRACE(block.offset);
    for (const bool zeros : {false, true}) {
      std::string cut = whole.substr(0, block.offset);
      if (zeros) cut.resize(whole.size());
      write(segment, cut);
      const auto report = this->report();
      EXPECT_EQ(report["good"], true) << tool.err();
      EXPECT_EQ(report["next_sequence"], block.first);
      EXPECT_FALSE(report.contains("tail"));
    }
    // Half a block is a torn tail.
    write(segment, whole.substr(0, block.offset + block.bytes / 2));
    const auto report = this->report();
    EXPECT_EQ(report["next_sequence"], block.first);
    ASSERT_TRUE(report.contains("tail")) << report;
    EXPECT_EQ(report["tail"]["sequence"], block.first);
    EXPECT_EQ(report["tail"]["offset"], block.offset);
    EXPECT_EQ(report["good"], true);
  }
  EXPECT_GE(blocks.back().next, first + 6);
}

// A bit in a block is damage where a block behind says that its records were durable, and else a
// torn tail.
TEST_F(CheckData, ABitIsDamageWhereItsRecordsWereDurable) {
  ASSERT_NO_FATAL_FAILURE(put_in_blocks(6));
  const std::string segment = segments().back();
  const std::string whole = bytes_of(segment);
  const std::vector<BlockPlace> blocks = blocks_in(segment);
  ASSERT_GE(blocks.size(), 7u);
  std::uint64_t damages = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const BlockPlace& block = blocks[i];
    SCOPED_TRACE(block.offset);
    const bool was_durable =
        std::any_of(blocks.begin() + static_cast<std::ptrdiff_t>(i) + 1, blocks.end(),
                    [&](const BlockPlace& behind) { return behind.durable >= block.first; });
    for (const std::uint64_t at : {std::uint64_t{1}, std::uint64_t{17}, std::uint64_t{70}}) {
      std::string changed = whole;
      changed[block.offset + at] = static_cast<char>(changed[block.offset + at] ^ 4);
      write(segment, changed);
      const auto report = this->report();
      EXPECT_EQ(report["next_sequence"], block.first);
      ASSERT_EQ(report.contains("damage"), was_durable) << report;
      EXPECT_EQ(report["good"], !was_durable);
      EXPECT_EQ(report.contains("tail"), !was_durable);
      if (!was_durable) continue;
      ++damages;
      EXPECT_EQ(report["damage"]["offset"], block.offset);
      EXPECT_EQ(report["damage"]["sequence"], block.first);
      EXPECT_EQ(report["damage"]["file"], fs::path(segment).filename().string());
      EXPECT_EQ(check(), kFailed);
      EXPECT_THAT(tool.err(), HasSubstr("--accept-loss-from " + std::to_string(block.first)));
    }
  }
  EXPECT_GE(damages, 3 * 5u);
}

TEST_F(CheckData, ALossIsAcceptedOnceAndOnlyWhereThereIsOne) {
  std::uint64_t given = 0;
  std::uint64_t counted = 0;
  {
    Store store = connect();
    Sequencer numbers = *store.create_sequencer("given");
    ASSERT_TRUE(store.open_map("default")->put("key", "value"));
    ASSERT_TRUE(store.open_map("default")->put("key", "value"));
    given = numbers.take(100)->first + 100;  // these are lost
    counted = *store.sequence("counted", 100) + 100;
  }
  ASSERT_NO_FATAL_FAILURE(put_in_blocks(3));
  config.data.accept_loss_from = 1;
  EXPECT_THAT(refusal(), HasSubstr("there is no damage at sequence 1 or later"));
  const std::string segment = segments()[0];
  std::string changed = bytes_of(segment);
  const BlockPlace block = blocks_in(segment).at(3);
  changed[block.offset + 70] ^= 1;
  write(segment, changed);
  config.data.accept_loss_from.reset();
  EXPECT_THAT(refusal(), HasSubstr("'espalier check --data DIR' says what is left"));
  config.data.accept_loss_from = block.first + 1;
  EXPECT_THAT(refusal(), HasSubstr("records that were durable are missing"));
  config.data.accept_loss_from = block.first;
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_TRUE(node->data()->recovered().cut);
  EXPECT_TRUE(node->data()->recovered().cut->accepted);
  EXPECT_EQ(node->data()->recovered().cut->sequence, block.first);
  {
    Store store = connect();
    EXPECT_GT(store.open_sequencer("given")->take(1)->first, given);
    EXPECT_GT(*store.sequence("counted", 1), counted);
  }
  stop();
  EXPECT_THAT(refusal(), HasSubstr("start it without --accept-loss-from"));
  config.data.accept_loss_from.reset();
  EXPECT_EQ(check(), kOk) << tool.err();
  ASSERT_NO_FATAL_FAILURE(start());
}

TEST_F(CheckData, TheCommandOfANodeTakesALossForOneStart) {
  stop();
  std::optional<std::uint64_t> taken;
  tool.serve = [&](Environment&, const node::Loaded& loaded, const LoadAgain& again) {
    taken = loaded.config.data.accept_loss_from;
    EXPECT_FALSE(again()->config.data.accept_loss_from);
    return Outcome<int>(kOk);
  };
  EXPECT_EQ(tool.run({"serve", "--data", dir(), "--accept-loss-from", "17"}), kOk) << tool.err();
  EXPECT_EQ(taken, 17u);
  EXPECT_EQ(tool.run({"serve", "--data", dir()}), kOk);
  EXPECT_FALSE(taken);
  EXPECT_EQ(tool.run({"serve", "--accept-loss-from", "17"}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("--data DIR"));
  EXPECT_EQ(tool.run({"serve", "--data", dir(), "--accept-loss-from", "all"}), kUsage);
}

TEST_F(CheckData, ANodeShowsHowFarItsLogIs) {
  ASSERT_NO_FATAL_FAILURE(fill());
  ASSERT_EQ(run({"stats"}), kOk) << tool.err();
  EXPECT_THAT(tool.out(), HasSubstr("\nlog         "));
  EXPECT_THAT(tool.out(), HasSubstr("\ncheckpoints 0 finished, 0 failed\n"));
  EXPECT_THAT(tool.out(), Not(HasSubstr("log failed")));
  ASSERT_EQ(run({"stats", "--json"}), kOk);
  const std::string out = tool.out();
  const auto json = nlohmann::json::parse(out.substr(out.find("{\"memory\"")));
  EXPECT_EQ(json["log"]["durable_sequence"], json["log"]["handed_over_sequence"]);
  EXPECT_GT(json["log"]["durable_sequence"], 10);
  EXPECT_EQ(json["log"]["bytes"].get<std::uint64_t>() % kSegmentBytes, 0u);
  EXPECT_EQ(json["log"]["failed"], false);
  EXPECT_EQ(json["log"]["checkpoints"], 0);
  EXPECT_GE(json["log"]["recovered_records"], 0);
}

TEST_F(CheckData, ARecordThatIsNoneIsNamed) {
  ASSERT_NO_FATAL_FAILURE(append({std::string(40, 'x')}));
  EXPECT_EQ(check(), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("a record cannot be applied"));
  EXPECT_THAT(tool.err(), HasSubstr("espalier log dump --data DIR --from 2 --to 2"));
  EXPECT_THAT(tool.out(), HasSubstr("map 'default': 0 entries, "));
}

}  // namespace
}  // namespace espalier::tools
