// SPDX-License-Identifier: Apache-2.0
// A data folder of an earlier version, kept in tests/data, is opened by this version: its
// checkpoint, the log after it, and objects of all kinds that can be durable. The functions that
// make and check such a folder are below; a folder of a later format is made by
//
//   ESPALIER_KEEP_FOLDER=DIR durability_test --gtest_filter=KeptFolder.IsMadeByThisVersion
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/temporary_folder.hpp"
#include "espalier/espalier.hpp"
#include "espalier/hash_map.hpp"
#include "espalier/region.hpp"
#include "node/data_check.hpp"
#include "node/data_reader.hpp"
#include "node_api/durable_store.hpp"

namespace espalier::test {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kKeptBytes = std::uint64_t{64} << 20;
/// So that the folder is small.
constexpr std::uint64_t kKeptSegment = std::uint64_t{64} << 10;
constexpr std::uint64_t kKeptCheckpoint = std::uint64_t{16} << 10;
constexpr int kKeptPairs = 100;

std::string kept_key(int i) { return "key" + std::to_string(i); }
std::string long_value() { return std::string(5000, 'x'); }

TableResult<Store> open_kept_folder(const std::string& dir, std::uint64_t checkpoint_bytes) {
  return node_api::open_durable_store({.dir = dir, .checkpoint_log_bytes = checkpoint_bytes},
                                      {.memory_bytes_max = kKeptBytes, .huge_pages = false},
                                      kKeptSegment);
}

bool has_checkpoint(const fs::path& dir) {
  for (const auto& file : fs::directory_iterator(dir / "log")) {
    if (file.path().extension() == ".end") return true;
  }
  return false;
}

void write_before_the_checkpoint(Store& store) {
  Map map = *store.create_map("map", {.node_bytes = 1024});
  for (int i = 0; i < kKeptPairs; ++i) ASSERT_TRUE(map.put(kept_key(i), "before"));
  ASSERT_TRUE(map.put("long", long_value()));
  HashMap hash = *store.create_hash_map("hash", {.partitions = 2});
  for (int i = 0; i < kKeptPairs; ++i) ASSERT_TRUE(hash.put(kept_key(i), "before"));
  ASSERT_TRUE(store.create_map("dropped"));
  Table table = *store.create_table("rows", *Schema::parse("a i64 not null, b text(10)"));
  RowWriter rows = table.writer();
  ASSERT_TRUE(rows.add(std::int64_t{41}, "forty-one"));
  ASSERT_TRUE(rows.commit());
  EXPECT_EQ(store.create_sequencer("numbers", 100)->take(5)->first, 100u);
  EXPECT_EQ(store.sequence("counter", 3), 0u);
  ASSERT_TRUE(store.create_region("region", 4096));
}

void write_behind_the_checkpoint(Store& store) {
  Map map = *store.open_map("map");
  ASSERT_TRUE(map.erase(kept_key(0)));
  ASSERT_TRUE(map.write(WriteBatch().put(kept_key(1), "behind").put("new", "behind")));
  ASSERT_TRUE(store.open_hash_map("hash")->erase(kept_key(0)));
  ASSERT_TRUE(store.open_hash_map("hash")->put(kept_key(1), "behind"));
  ASSERT_TRUE(store.drop_map("dropped"));
  Table table = *store.open_table("rows");
  RowWriter rows = table.writer();
  ASSERT_TRUE(rows.add(std::int64_t{42}, std::nullopt));
  ASSERT_TRUE(rows.commit());
  ASSERT_TRUE(store.open_sequencer("numbers")->take(2));
  EXPECT_EQ(store.sequence("counter", 4), 3u);
}

/// Makes a folder with a checkpoint and a log after it.
void make_kept_folder(const fs::path& dir) {
  {
    auto store = open_kept_folder(dir.string(), kKeptCheckpoint);
    ASSERT_TRUE(store) << store.error().words;
    ASSERT_NO_FATAL_FAILURE(write_before_the_checkpoint(*store));
    Map filler = *store->create_map("filler");
    const std::uint64_t deadline_ns = base::monotonic_ns() + 60'000'000'000;
    for (int i = 0; !has_checkpoint(dir); ++i) {
      ASSERT_LT(base::monotonic_ns(), deadline_ns);
      ASSERT_TRUE(filler.put("key", std::to_string(i)));
    }
  }
  auto store = open_kept_folder(dir.string(), kKeptBytes);
  ASSERT_TRUE(store) << store.error().words;
  ASSERT_NO_FATAL_FAILURE(write_behind_the_checkpoint(*store));
}

void expect_kept(const Store& store) {
  EXPECT_EQ(store.map_names(), (std::vector<std::string>{"filler", "map"}));
  const Map map = *store.open_map("map");
  const HashMap hash = *store.open_hash_map("hash");
  EXPECT_EQ(*map.count("", ""), kKeptPairs + 1u);
  EXPECT_FALSE(*map.get(kept_key(0)));
  EXPECT_FALSE(*hash.get(kept_key(0)));
  for (int i = 1; i < kKeptPairs; ++i) {
    const std::string value = i == 1 ? "behind" : "before";
    EXPECT_EQ((*map.get(kept_key(i)))->value, value);
    EXPECT_EQ((*hash.get(kept_key(i)))->value, value);
  }
  EXPECT_EQ((*map.get("new"))->value, "behind");
  EXPECT_EQ((*map.get("long"))->value, long_value());
  EXPECT_EQ(store.open_table("rows")->rows(), 2u);
  EXPECT_EQ(store.open_sequencer("numbers")->describe()->next, 107u);
  EXPECT_EQ(store.open_region("region")->bytes(), 4096u);
}

/// Opens it twice, for the first opening begins a new segment.
void expect_opened(const fs::path& dir) {
  ASSERT_TRUE(has_checkpoint(dir));
  {
    const auto data = node::DataReader::open(dir.string());
    ASSERT_TRUE(data) << data.error().what;
    const auto report = node::check_data(**data, {.memory_bytes_max = kKeptBytes});
    ASSERT_TRUE(report) << report.error().what;
    EXPECT_TRUE(report->good()) << (report->mistake ? report->mistake->what : "");
    EXPECT_TRUE(report->checkpoint);
  }
  for (std::uint64_t again = 0; again < 2; ++again) {
    auto store = open_kept_folder(dir.string(), kKeptBytes);
    ASSERT_TRUE(store) << store.error().words;
    expect_kept(*store);
    EXPECT_EQ(store->sequence("counter", 1), 7u + again);
  }
}

TEST(KeptFolder, IsMadeByThisVersion) {
  const base::TemporaryFolder folder;
  const char* const keep = std::getenv("ESPALIER_KEEP_FOLDER");
  const fs::path dir = folder / "data";
  ASSERT_NO_FATAL_FAILURE(make_kept_folder(dir));
  if (keep != nullptr) fs::copy(dir, keep, fs::copy_options::recursive);
  ASSERT_NO_FATAL_FAILURE(expect_opened(dir));
}

TEST(KeptFolder, OfTheFirstFormatIsOpened) {
  const base::TemporaryFolder folder;
  const fs::path dir = folder / "data";
  fs::copy(fs::path(ESPALIER_SOURCE_DIR) / "tests/data/store_1", dir, fs::copy_options::recursive);
  ASSERT_NO_FATAL_FAILURE(expect_opened(dir));
}

}  // namespace
}  // namespace espalier::test
