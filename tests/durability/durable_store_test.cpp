// SPDX-License-Identifier: Apache-2.0
// A durable store of this process (espalier/durable_store.hpp): its data is there when it is opened
// again, it explains its refusals, and its handles keep the folder open.
#include "node_api/durable_store.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/temporary_folder.hpp"
#include "catalog/redo_record.hpp"
#include "espalier/embedding_table.hpp"
#include "espalier/espalier.hpp"
#include "espalier/hash_map.hpp"
#include "espalier/ranking_model.hpp"
#include "espalier/transaction.hpp"
#include "kinds/embedding/testing/ranking_files.hpp"
#include "log/log.hpp"
#include "log/posix_folder.hpp"
#include "log/store_file.hpp"
#include "log/testing/small_log.hpp"

namespace espalier::test {
namespace {

constexpr std::uint64_t kStoreBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kSegmentBytes = std::uint64_t{1} << 20;

class DurableStore : public testing::Test {
 protected:
  DurableStore() {
    data_.dir = (folder_ / "data").string();
    options_.memory_bytes_max = kStoreBytes;
    options_.huge_pages = false;
  }
  [[nodiscard]] Store open() const {
    auto store = node_api::open_durable_store(data_, options_, kSegmentBytes);
    EXPECT_TRUE(store) << store.error().words;
    return std::move(*store);
  }
  /// What it is refused with.
  [[nodiscard]] TableError refusal() const {
    const auto store = node_api::open_durable_store(data_, options_, kSegmentBytes);
    EXPECT_FALSE(store);
    return store ? TableError() : store.error();
  }

  base::TemporaryFolder folder_;
  DataOptions data_;
  StoreOptions options_;
};

TEST_F(DurableStore, HasWhatItHadWhenItIsOpenedAgain) {
  {
    Store store = open();
    Map map = *store.create_map("map", {.node_bytes = 1024});
    ASSERT_TRUE(map.put("key", "value"));
    ASSERT_TRUE(map.put("long", std::string(100'000, 'x')));
    ASSERT_TRUE(map.put("gone", "value"));
    ASSERT_TRUE(map.erase("gone"));
    ASSERT_TRUE(map.write(WriteBatch().put("a", "1").put("b", "2")));
    EXPECT_EQ(*map.add("sum", 5), 5u);
    ASSERT_TRUE(store.create_map("dropped"));
    ASSERT_TRUE(store.drop_map("dropped"));
    HashMap hash = *store.create_hash_map("hash");
    ASSERT_TRUE(hash.put("key", "hashed"));
    Sequencer numbers = *store.create_sequencer("numbers", 100);
    EXPECT_EQ(numbers.take(7)->first, 100u);
    EXPECT_EQ(store.sequence("counter", 5), 0u);
    Table table = *store.create_table("rows", *Schema::parse("a i64 not null"));
    RowWriter writer = table.writer();
    ASSERT_TRUE(writer.add(std::int64_t{41}));
    EXPECT_EQ(writer.commit(), 0u);
  }
  for (std::uint64_t again = 0; again < 2; ++again) {
    std::uint64_t heard = 0;
    data_.recovering = [&](const DataProgress& now) { heard = now.records; };
    data_.recovery_threads = static_cast<std::uint32_t>(1 + again);
    Store store = open();
    EXPECT_EQ(heard, 0u) << "it is short";
    EXPECT_EQ(store.map_names(), (std::vector<std::string>{"map"}));
    Map map = *store.open_map("map");
    EXPECT_EQ((*map.get("key"))->value, "value");
    EXPECT_EQ((*map.get("long"))->value, std::string(100'000, 'x'));
    EXPECT_FALSE(*map.get("gone"));
    EXPECT_EQ((*map.get("a"))->value + (*map.get("b"))->value, "12");
    EXPECT_EQ(*map.add("sum", 1), 6u + again);
    EXPECT_EQ((*store.open_hash_map("hash")->get("key"))->value, "hashed");
    EXPECT_EQ(store.open_sequencer("numbers")->take(1)->first, 107u + again);
    EXPECT_EQ(store.sequence("counter", 1), 5u + again);
    EXPECT_EQ(store.open_table("rows")->rows(), 1u);
  }
}

TEST_F(DurableStore, HasOneClockForItsMapsWhereItIsOpenedSo) {
  options_.shared_clock = true;
  data_.recovery_threads = 4;
  {
    Store store = open();
    ASSERT_TRUE(store.create_map("map"));
    ASSERT_TRUE(store.create_hash_map("hash"));
    const auto done = store.transact(Transaction().put("map", "k", "1").put("hash", "k", "2"));
    ASSERT_TRUE(done) << message(done.error());
  }
  Store store = open();
  const auto read = store.transact(
      Transaction().get("map", "k").get("hash", "k").put("map", "k", "3").put("hash", "k", "4"));
  ASSERT_TRUE(read) << message(read.error());
  EXPECT_EQ(read->found[0]->value + read->found[1]->value, "12");
  EXPECT_GT(read->version, read->found[0]->version);
  EXPECT_GT(read->version, read->found[1]->version);
}

TEST_F(DurableStore, KeepsRowsOfEmbeddingTables) {
  const std::uint32_t ids[] = {0, 1, 2};
  const std::uint32_t each[] = {0, 1, 2};
  const auto has = [&](const Store& store, float a, float b, float c) {
    const auto table = store.open_embedding_table("e");
    const auto rows = table->reduce(Reduction::sum, {ids, each});
    ASSERT_TRUE(rows) << message(rows.error().error);
    for (std::size_t i = 0; i < rows->size(); ++i) {
      EXPECT_EQ((*rows)[i], i < 8 ? a : i < 16 ? b : c);
    }
  };
  const auto row = [](float value) { return std::vector<float>(8, value); };
  {
    Store store = open();
    auto table = store.create_embedding_table("e", {.dimension = 8});
    ASSERT_TRUE(table && table->append(row(1)) && table->append(row(2)) && table->append(row(3)));
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(table->replace(1, row(static_cast<float>(i))));
    has(store, 1, 99, 3);  // what was answered is seen
  }
  for (int again = 0; again < 2; ++again) {
    Store store = open();
    has(store, 1, 99, 3 + static_cast<float>(again));
    ASSERT_TRUE(store.open_embedding_table("e")->replace(2, row(4)));
  }
}

TEST_F(DurableStore, KeepsGroupsOfEmbeddingTables) {
  const std::uint8_t pairs[] = {2, 3};
  const std::uint32_t rows[] = {0, 1, 2, 3, 4};
  const std::uint32_t bag[] = {0};
  const auto sum = [&](const Store& store) {
    const auto table = store.open_embedding_table("e");
    const auto sums = table->reduce(Reduction::sum, {rows, bag});
    EXPECT_TRUE(sums) << message(sums.error().error);
    return sums->front();
  };
  {
    Store store = open();
    auto table = store.create_embedding_table("e", {.dimension = 8});
    ASSERT_TRUE(table && table->append(std::vector<float>(5 * 8, 1)));
    ASSERT_TRUE(table->group({pairs, rows}));
    EXPECT_EQ(sum(store), 5);
    ASSERT_TRUE(table->replace(3, std::vector<float>(8, 10)));
    EXPECT_EQ(sum(store), 14) << "what was answered is seen";
  }
  for (int again = 0; again < 2; ++again) {
    Store store = open();
    auto table = store.open_embedding_table("e");
    EXPECT_EQ(table->stats()->groups, 2u);
    EXPECT_EQ(sum(store), 14);
    EXPECT_EQ(sum(store), 14);
    EXPECT_EQ(table->stats()->rows_gathered, 4u) << "a sum for each group";
    ASSERT_TRUE(table->replace(0, std::vector<float>(8, 1)));
  }
  {
    Store store = open();
    ASSERT_TRUE(store.open_embedding_table("e")->group({}));
  }
  Store store = open();
  EXPECT_EQ(store.open_embedding_table("e")->stats()->groups, 0u);
  EXPECT_EQ(sum(store), 14);
}

TEST_F(DurableStore, KeepsRankingModels) {
  embedding::RankingParts parts;
  parts.dense = 3000;  // weights come in several records
  parts.bottom = {30, 8};
  base::Random random(5);
  parts.draw(random);
  const std::vector<float> dense(2 * parts.dense, 0.25F);
  const std::uint32_t ids[] = {0, 1, 2};
  const std::uint32_t offsets[] = {0, 2};
  const EmbeddingBags bags[] = {{ids, offsets}, {ids, offsets}};
  const auto ranks = [&](const Store& store) {
    const auto made = store.open_ranking_model("m")->infer({dense, bags});
    EXPECT_TRUE(made) << message(made.error().error);
    return made.value_or(std::vector<float>());
  };
  std::vector<float> before;
  {
    Store store = open();
    for (const std::string& name : parts.tables) {
      auto table = store.create_embedding_table(name, {.dimension = 8});
      ASSERT_TRUE(table && table->append(std::vector<float>(3 * 8, 0.5F)));
    }
    ASSERT_TRUE(store.create_ranking_model("other", parts.file()));
    ASSERT_TRUE(store.create_ranking_model("m", parts.file()));
    ASSERT_TRUE(store.drop_ranking_model("other"));
    before = ranks(store);
    EXPECT_EQ(before.size(), 2u);
  }
  for (int again = 0; again < 2; ++again) {
    Store store = open();
    EXPECT_EQ(ranks(store), before);
    EXPECT_EQ(store.open_ranking_model("other").error().code, Code::not_found);
    EXPECT_EQ(store.create_ranking_model("m", parts.file()).error().error.code,
              Code::already_exists);
  }
}

TEST_F(DurableStore, RefusesWhatCannotBeDurable) {
  Store store = open();
  EXPECT_EQ(store.create_map("m", {.versions = false}).error().code, Code::unsupported);
  EXPECT_EQ(store.create_hash_map("h", {.versions = false}).error().code, Code::unsupported);
  EXPECT_EQ(store.map_names(), std::vector<std::string>());
}

/// How an object was listed.
template <class T>
std::optional<Durability> listed(const Result<std::vector<T>>& all, std::string_view name) {
  for (const T& one : *all) {
    if (one.name == name) return one.durability;
  }
  return std::nullopt;
}

TEST_F(DurableStore, AnObjectMayPromiseLessOrMoreThanItsStore) {
  for (const Durability of_store : {Durability::sync, Durability::async}) {
    SCOPED_TRACE(name(of_store));
    data_.dir = (folder_ / std::string(name(of_store))).string();
    data_.durability = of_store;
    {
      Store store = open();
      MapOptions options;
      options.durability = Durability::none;
      options.versions = false;
      Map cache = *store.create_map("cache", options);
      const std::uint64_t recorded = store.durable_state()->recorded;
      for (int i = 0; i < 200; ++i) ASSERT_TRUE(cache.put(std::to_string(i), "v"));
      EXPECT_EQ(store.durable_state()->recorded, recorded) << "it makes no records";
      EXPECT_EQ(cache.options().durability, Durability::none);
      HashMapOptions hashed;
      hashed.durability = Durability::none;
      HashMap lost = *store.create_hash_map("lost", hashed);
      ASSERT_TRUE(lost.put("k", "v"));
      TableOptions of_rows;
      of_rows.durability = Durability::none;
      Table rows = *store.create_table("rows", *Schema::parse("a i64 not null"), of_rows);
      RowWriter writer = rows.writer();
      ASSERT_TRUE(writer.add(std::int64_t{41}));
      EXPECT_EQ(writer.commit(), 0u);
      EXPECT_EQ(rows.rows(), 1u);
      auto numbers =
          store.create_embedding_table("e", {.dimension = 8, .durability = {Durability::none}});
      ASSERT_TRUE(numbers && numbers->append(std::vector<float>(8)));
      options = {};
      options.durability = Durability::sync;
      Map kept = *store.create_map("kept", options);
      ASSERT_TRUE(kept.put("k", "v"));
      EXPECT_EQ(store.durable_state()->durable, store.durable_state()->recorded);
      hashed.durability = Durability::async;
      HashMap early = *store.create_hash_map("early", hashed);
      ASSERT_TRUE(early.put("k", "v"));
      ASSERT_TRUE(store.await_durable());
      EXPECT_EQ(listed(store.hash_maps(), "lost"), Durability::none);
      EXPECT_EQ(listed(store.hash_maps(), "early"), Durability::async);
      EXPECT_EQ((*store.tables()).front().durability, Durability::none);
    }
    Store store = open();
    EXPECT_EQ(store.map_names(), (std::vector<std::string>{"cache", "kept"}));
    EXPECT_EQ(store.open_map("cache")->count("", ""), 0u);
    EXPECT_EQ(store.open_map("cache")->options().durability, Durability::none);
    EXPECT_FALSE(*store.open_hash_map("lost")->get("k"));
    EXPECT_EQ(store.open_table("rows")->rows(), 0u);
    EXPECT_EQ((*store.open_map("kept")->get("k"))->value, "v");
    EXPECT_EQ((*store.open_hash_map("early")->get("k"))->value, "v");
    EXPECT_EQ(listed(store.hash_maps(), "early"), Durability::async);
    EXPECT_EQ(store.open_hash_map("early")->options().durability, Durability::async);
  }
}

// A crash would lose one half of it.
TEST_F(DurableStore, ATransactionIsAllKeptOrAllLost) {
  options_.shared_clock = true;
  Store store = open();
  MapOptions none;
  none.durability = Durability::none;
  ASSERT_TRUE(store.create_map("a", none) && store.create_map("b", none));
  ASSERT_TRUE(store.create_map("kept"));
  EXPECT_TRUE(store.transact(Transaction().put("a", "k", "1").put("b", "k", "2")));
  const auto mixed = store.transact(Transaction().put("kept", "k", "1").put("a", "k", "3"));
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().code, Code::unsupported);
  EXPECT_EQ(mixed.error().detail, 1u);
  EXPECT_EQ((*store.open_map("a")->get("k"))->value, "1");
}

TEST_F(DurableStore, SaysWhatItCannotPromise) {
  TableOptions encrypted{.key = *TableKey::parse("000102030405060708090a0b0c0d0e0f")};
  encrypted.encrypted = true;
  encrypted.durability = Durability::none;
  Store store = open();
  const auto sealed = store.create_table("t", *Schema::parse("a i64 not null"), encrypted);
  ASSERT_FALSE(sealed);
  EXPECT_EQ(sealed.error().error.code, Code::unsupported);
  auto in_memory = Store::open(options_);
  ASSERT_TRUE(in_memory);
  MapOptions options;
  options.durability = Durability::sync;
  EXPECT_EQ(in_memory->create_map("m", options).error().code, Code::unsupported);
  options.durability = Durability::none;
  EXPECT_TRUE(in_memory->create_map("m", options));
}

TEST_F(DurableStore, EachRunHasItsOwnNumbers) {
  std::uint64_t first = 0;
  {
    Store store = open();
    first = store.durable_state()->run;
    EXPECT_NE(first, 0u);
    EXPECT_EQ(store.await_durable()->run, first);
  }
  EXPECT_NE(open().durable_state()->run, first);
}

TEST_F(DurableStore, EncryptedRowsAreThereAgain) {
  TableOptions encrypted{.key = *TableKey::parse("000102030405060708090a0b0c0d0e0f")};
  encrypted.encrypted = true;
  const auto append = [](Table& table, std::int64_t from) {
    RowWriter writer = table.writer();
    for (std::int64_t i = from; i < from + 10; ++i) EXPECT_TRUE(writer.add(i));
    const auto first = writer.commit();
    EXPECT_TRUE(first) << first.error().words;
  };
  {
    Store store = open();
    Table table = *store.create_table("t", *Schema::parse("a i64 not null"), encrypted);
    append(table, 0);
  }
  Store store = open();
  Table table = *store.open_table("t", encrypted);
  append(table, 10);
  auto rows = table.read_rows();
  ASSERT_TRUE(rows) << rows.error().words;
  std::int64_t next = 0;
  for (auto some = rows->next(); some && *some; some = rows->next()) {
    for (std::size_t i = 0; i < (*some)->size(); ++i) {
      EXPECT_EQ((**some)[i].get<std::int64_t>(0), next++);
    }
  }
  EXPECT_EQ(next, 20);
}

// In a durable folder, writes that were answered early are there once they are reported as durable.
TEST_F(DurableStore, WhatIsAnsweredEarlyIsThereOnceItIsDurable) {
  data_.durability = Durability::async;
  Version version = 0;
  {
    Store store = open();
    Map map = *store.create_map("map");
    HashMap hash = *store.create_hash_map("hash");
    for (int i = 0; i < 200; ++i) {
      version = map.put(std::to_string(i), "1")->version;
      ASSERT_TRUE(hash.put(std::to_string(i), "2"));
    }
    const auto state = store.await_durable();
    ASSERT_TRUE(state) << message(state.error());
    EXPECT_EQ(state->durable, state->recorded);
    EXPECT_GE(state->recorded, 402u);
    EXPECT_EQ(store.durable_state()->durable, state->durable);
  }
  data_.durability = Durability::sync;  // another start, another promise
  Store store = open();
  Map map = *store.open_map("map");
  EXPECT_EQ((*map.get("199"))->value, "1");
  EXPECT_GT(map.put("0", "again")->version, version);
  EXPECT_EQ((*store.open_hash_map("hash")->get("199"))->value, "2");
}

TEST_F(DurableStore, RefusesOptionsThatCannotBe) {
  data_.durability = Durability::none;
  const auto refused = [&] { return open_durable_store(data_, options_).error().error.code; };
  EXPECT_EQ(refused(), Code::invalid_argument);
  data_.durability = Durability::async;
  data_.async_ms = 19;
  EXPECT_EQ(refused(), Code::invalid_argument);
}

TEST_F(DurableStore, RefusesAFolderInWords) {
  {
    const Store store = open();
    const TableError taken = refusal();
    EXPECT_EQ(taken.error.code, Code::corrupt);
    EXPECT_NE(taken.words.find("another process uses it"), std::string::npos) << taken.words;
  }
  data_.accept_loss_from = 1;
  EXPECT_NE(refusal().words.find("no loss to accept"), std::string::npos);
  data_.accept_loss_from.reset();
  options_.participants_max = 0;
  EXPECT_EQ(refusal().error.code, Code::invalid_argument);
  options_.participants_max = 16;
  data_.dir = (folder_ / "missing" / "data").string();
  EXPECT_EQ(refusal().error.code, Code::corrupt);
}

/// Appends to a log a record of an unknown type, with damage after it. Returns the sequence of that
/// record.
void spoil(const std::string& dir, std::uint64_t& refused) {
  constexpr std::string_view kDamaged = "this is damaged below";
  log::PosixFolder whole(dir);
  log::PosixFolder folder(dir + "/log");
  log::LogOptions options;
  options.recovery.node = *log::open_store_file(whole, 1);
  options.writer.segment_bytes = kSegmentBytes;
  options.threads = false;
  std::string last;
  const auto opened = log::Log::open(
      folder, options, [&](std::uint64_t, std::span<const std::byte> record) -> Result<void> {
        last.assign(reinterpret_cast<const char*>(record.data()), record.size());
        return {};
      });
  ASSERT_TRUE(opened) << log::message(opened.error());
  log::LogWriter& writer = (*opened)->writer();
  ASSERT_GT(last.size(), offsetof(catalog::RedoHead, type));
  last[offsetof(catalog::RedoHead, type)] = static_cast<char>(255);
  refused = log::append(writer, last);
  ASSERT_TRUE(writer.flush());
  for (const std::string_view text : {kDamaged, kDamaged}) {
    log::append(writer, text);
    ASSERT_TRUE(writer.flush());
  }
  ASSERT_TRUE((*opened)->close());
  for (const auto& file : std::filesystem::directory_iterator(dir + "/log")) {
    std::fstream bytes(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    const std::string all((std::istreambuf_iterator<char>(bytes)), {});
    const std::size_t at = all.find(kDamaged);
    if (at == std::string::npos) continue;
    bytes.clear();
    bytes.seekp(static_cast<std::streamoff>(at));
    bytes.put('T');
    return;
  }
  ADD_FAILURE() << "no file has it";
}

// What threads have not come to when the reader meets the damage.
TEST_F(DurableStore, NamesTheRecordThatIsRefusedBeforeDamageBehindIt) {
  ASSERT_TRUE(open().create_hash_map("hash")->put("key", "value"));
  std::uint64_t refused = 0;
  ASSERT_NO_FATAL_FAILURE(spoil(data_.dir, refused));
  for (const std::uint32_t threads : {1U, 3U}) {
    data_.recovery_threads = threads;
    const std::string words = refusal().words;
    EXPECT_NE(words.find("a record cannot be applied"), std::string::npos) << words;
    EXPECT_NE(words.find("sequence " + std::to_string(refused) + ":"), std::string::npos) << words;
  }
}

TEST_F(DurableStore, RefusesBoundsThatCannotBe) {
  const auto words = [&] {
    const auto store = open_durable_store(data_, options_);
    EXPECT_FALSE(store);
    return store ? "" : store.error().words;
  };
  data_.log_bytes_max = 1;
  EXPECT_EQ(words(), "DataOptions::log_bytes_max must be 256 MiB to 1 TiB");
  data_.log_bytes_max = DataOptions().log_bytes_max;
  data_.checkpoint_log_bytes = 1;
  EXPECT_EQ(words(), "DataOptions::checkpoint_log_bytes must be 64 MiB to 1 TiB");
  data_.checkpoint_log_bytes = DataOptions().checkpoint_log_bytes;
  data_.recovery_threads = 17;
  EXPECT_EQ(words(), "DataOptions::recovery_threads must be 16 at most");
  data_.dir.clear();
  EXPECT_EQ(words(), "a durable store needs a folder: DataOptions::dir");
}

// Their objects hand records to the log of the folder.
TEST_F(DurableStore, ItsHandlesKeepTheFolderOpen) {
  std::optional<Store> store = open();
  std::optional<Sequencer> numbers = *store->create_sequencer("numbers");
  std::optional<HashMap> hash = *store->create_hash_map("hash");
  std::optional<Table> table = *store->create_table("rows", *Schema::parse("a i64 not null"));
  store.reset();
  EXPECT_EQ(numbers->take(3)->first, 0u);
  ASSERT_TRUE(hash->put("key", "value"));
  EXPECT_NE(refusal().words.find("another process uses it"), std::string::npos);
  hash.reset();
  table.reset();
  EXPECT_EQ(numbers->take(3)->first, 3u);
  numbers.reset();
  const Store again = open();
  EXPECT_EQ(again.open_sequencer("numbers")->take(1)->first, 6u);
  EXPECT_EQ((*again.open_hash_map("hash")->get("key"))->value, "value");
}

class DurableStoreConcurrency : public DurableStore {};

TEST_F(DurableStoreConcurrency, ThreadsThatWriteAtATimeLoseNothing) {
  constexpr int kThreads = 4;
  constexpr int kWrites = 30;
  {
    Store store = open();
    Map map = *store.create_map("map");
    HashMap hash = *store.create_hash_map("hash");
    Sequencer numbers = *store.create_sequencer("numbers");
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kWrites; ++i) {
          const std::string key = std::to_string(t) + "/" + std::to_string(i);
          EXPECT_TRUE(map.put(key, key));
          EXPECT_TRUE(map.add("sum", 1));
          EXPECT_TRUE(hash.put(key, key));
          EXPECT_TRUE(numbers.take(1));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  Store store = open();
  const Map map = *store.open_map("map");
  const HashMap hash = *store.open_hash_map("hash");
  EXPECT_EQ(*map.count("", ""), kThreads * kWrites + 1u);
  EXPECT_EQ(*store.open_map("map")->add("sum", 0), std::uint64_t{kThreads * kWrites});
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < kWrites; ++i) {
      const std::string key = std::to_string(t) + "/" + std::to_string(i);
      EXPECT_EQ((*hash.get(key))->value, key);
    }
  }
  EXPECT_EQ(store.open_sequencer("numbers")->take(1)->first, std::uint64_t{kThreads * kWrites});
}

}  // namespace
}  // namespace espalier::test
