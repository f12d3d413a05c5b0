// SPDX-License-Identifier: Apache-2.0
// A node with a data folder, in this process: it stops and restarts with its data, and explains its
// refusals.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/temporary_folder.hpp"
#include "espalier/embedding_table.hpp"
#include "espalier/espalier.hpp"
#include "espalier/hash_map.hpp"
#include "espalier/region.hpp"
#include "espalier/sequencer.hpp"
#include "kinds/embedding/testing/ranking_files.hpp"
#include "log/mapped_folder.hpp"
#include "node/node.hpp"
#include "node/testing/http_fixture.hpp"
#include "node/testing/metrics_reader.hpp"
#include "tests/support/node_config.hpp"

namespace espalier::test {
namespace {

class NodeWithData : public testing::Test {
 protected:
  NodeWithData() {
    config_ = node_config(folder_);
    config_.data.dir = (folder_ / "data").string();
    options_.segment_bytes = std::uint64_t{1} << 20;
    options_.data_mistake = &mistake_;
  }
  void start() {
    node_.reset();
    auto node = node::Node::start(config_, options_);
    ASSERT_TRUE(node) << message(node.error()) << mistake_;
    node_ = std::move(*node);
  }
  Store connect() {
    auto store = Store::connect("unix:" + config_.node.socket);
    EXPECT_TRUE(store) << message(store.error());
    return std::move(*store);
  }
  /// Waits for the first one of this node.
  void make_checkpoint() {
    node_->checkpoints()->request();
    const std::uint64_t deadline_ns = base::monotonic_ns() + 60'000'000'000;
    while (node_->checkpoints()->counts().finished == 0) {
      ASSERT_EQ(node_->checkpoints()->counts().failed, 0u);
      ASSERT_LT(base::monotonic_ns(), deadline_ns);
      std::this_thread::yield();
    }
  }
  /// What keeps a node from starting.
  std::string refusal() {
    mistake_.clear();
    const auto node = node::Node::start(config_, options_);
    EXPECT_FALSE(node);
    return mistake_;
  }

  base::TemporaryFolder folder_;
  node::Config config_;
  node::NodeOptions options_;
  std::string mistake_;
  std::unique_ptr<node::Node> node_;
};

TEST_F(NodeWithData, HasWhatItHadWhenItIsStartedAgain) {
  ASSERT_NO_FATAL_FAILURE(start());
  EXPECT_EQ(node_->data()->applied_records(), 0u);
  {
    const Store store = connect();
    auto map = *store.open_map("default");
    ASSERT_TRUE(map.put("key", "value"));
    ASSERT_TRUE(map.put("long", std::string(100'000, 'x')));
    ASSERT_TRUE(map.put("gone", "value"));
    ASSERT_TRUE(map.erase("gone"));
  }
  {
    Store store = connect();
    ASSERT_TRUE(store.create_map("second", {.node_bytes = 1024}));
    ASSERT_TRUE(store.create_map("dropped"));
    ASSERT_TRUE(store.drop_map("dropped"));
    auto hash = *store.create_hash_map("hash");
    ASSERT_TRUE(hash.put("key", "hashed"));
    auto numbers = *store.create_sequencer("numbers", 100);
    EXPECT_EQ(numbers.take(7)->first, 100u);
    EXPECT_EQ(store.sequence("counter", 5), 0u);
    auto table = *store.create_table("rows", *Schema::parse("a i64 not null"));
    RowWriter writer = table.writer();
    ASSERT_TRUE(writer.add(std::int64_t{41}));
    ASSERT_TRUE(writer.add(std::int64_t{42}));
    EXPECT_EQ(writer.commit(), 0u);
  }
  for (int again = 0; again < 2; ++again) {
    ASSERT_NO_FATAL_FAILURE(start());
    EXPECT_GT(node_->data()->applied_records(), 10u);
    EXPECT_FALSE(node_->data()->recovered().cut) << "it was closed as it should be";
    Store store = connect();
    EXPECT_EQ(store.map_names(), (std::vector<std::string>{"default", "second"}));
    const auto map = *store.open_map("default");
    EXPECT_EQ((*map.get("key"))->value, "value");
    EXPECT_EQ((*map.get("long"))->value, std::string(100'000, 'x'));
    EXPECT_FALSE(*map.get("gone"));
    EXPECT_EQ((*store.open_hash_map("hash")->get("key"))->value, "hashed");
    EXPECT_EQ(store.open_sequencer("numbers")->take(1)->first, 107u + static_cast<unsigned>(again));
    EXPECT_EQ(store.sequence("counter", 1), 5u + static_cast<unsigned>(again));
    EXPECT_EQ(store.open_table("rows")->rows(), 2u);
  }
}

// Of the log, and then of a checkpoint.
TEST_F(NodeWithData, EmbeddingTablesAndModelsAreThereAgain) {
  ASSERT_NO_FATAL_FAILURE(start());
  embedding::RankingParts parts;  // over the tables a and b
  base::Random random(5);
  parts.draw(random);
  const auto what_there_is = [&] {
    const Store store = connect();
    const EmbeddingTable table = *store.open_embedding_table("a");
    const auto stats = table.stats().value();
    EXPECT_EQ(stats.rows, 20u);
    EXPECT_EQ(stats.groups, 1u);
    const std::uint32_t ids[] = {3, 4, 19, 0};
    const std::uint32_t offsets[] = {0, 3};
    std::vector<float> all = table.reduce(Reduction::sum, {ids, offsets}).value();
    EXPECT_EQ(all.front(), 3.0F + 0.25F + 19.0F);
    const auto ranks =
        store.open_ranking_model("ads")->infer_text("1 2 3 4 5 | 3 4 | 7\n0 0 0 0 0 | |\n");
    EXPECT_TRUE(ranks) << message(ranks.error());
    if (ranks) all.insert(all.end(), ranks->begin(), ranks->end());
    return all;
  };
  {
    Store store = connect();
    for (const char* const name : {"a", "b", "gone"}) {
      EmbeddingTable table = *store.create_embedding_table(name, {.dimension = parts.dimension});
      for (int row = 0; row < 20; ++row) {
        ASSERT_TRUE(table.append(std::vector<float>(parts.dimension, static_cast<float>(row))));
      }
      const std::uint8_t pair[] = {2};
      const std::uint32_t rows[] = {3, 4};
      ASSERT_TRUE(table.group({pair, rows}));
      ASSERT_TRUE(table.replace(4, std::vector<float>(parts.dimension, 0.25F)));
    }
    ASSERT_TRUE(store.create_ranking_model("ads", parts.file()));
    ASSERT_TRUE(store.create_ranking_model("gone model", parts.file()));
    ASSERT_TRUE(store.drop_embedding_table("gone"));
    ASSERT_TRUE(store.drop_ranking_model("gone model"));
  }
  const std::vector<float> before = what_there_is();
  for (int again = 0; again < 3; ++again) {
    if (again == 2) {
      ASSERT_NO_FATAL_FAILURE(make_checkpoint());
    }
    ASSERT_NO_FATAL_FAILURE(start());
    EXPECT_EQ(node_->data()->recovered().checkpoint.has_value(), again == 2);
    EXPECT_EQ(what_there_is(), before);
    const Store store = connect();
    EXPECT_EQ(store.open_embedding_table("gone").error().code, Code::not_found);
    EXPECT_EQ(store.open_ranking_model("gone model").error().code, Code::not_found);
  }
}

// The log's first segment goes with a checkpoint, and what was there is there again.
TEST_F(NodeWithData, ACheckpointStandsForTheLogBeforeIt) {
  ASSERT_NO_FATAL_FAILURE(start());
  const std::filesystem::path first = folder_ / "data" / "log" / "log-0000000000000001.seg";
  ASSERT_TRUE(std::filesystem::exists(first));
  {
    Store store = connect();
    auto map = *store.open_map("default");
    for (int i = 0; i < 40; ++i) {
      ASSERT_TRUE(map.put("key" + std::to_string(i % 3), std::string(100'000, 'x')));
    }
    ASSERT_TRUE(map.put("gone", "value"));
    ASSERT_TRUE(map.erase("gone"));
    ASSERT_TRUE(store.create_map("dropped"));
    ASSERT_TRUE(store.drop_map("dropped"));
    EXPECT_EQ(store.sequence("counter", 5), 0u);
  }
  ASSERT_NO_FATAL_FAILURE(make_checkpoint());
  EXPECT_FALSE(std::filesystem::exists(first));
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_TRUE(node_->data()->recovered().checkpoint);
  Store store = connect();
  const auto map = *store.open_map("default");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ((*map.get("key" + std::to_string(i)))->value, std::string(100'000, 'x'));
  }
  EXPECT_FALSE(*map.get("gone"));
  EXPECT_EQ(store.map_names(), std::vector<std::string>{"default"});
  EXPECT_EQ(store.sequence("counter", 1), 5u);
}

// The checkpoint's thread copies objects of the store that is being destroyed.
TEST_F(NodeWithData, IsStoppedWhileACheckpointIsMade) {
  ASSERT_NO_FATAL_FAILURE(start());
  constexpr int kValues = 60;
  {
    Store store = connect();
    auto map = *store.open_map("default");
    for (int i = 0; i < kValues; ++i) {
      ASSERT_TRUE(map.put("key" + std::to_string(i), std::string(100'000, 'x')));
      ASSERT_TRUE(store.create_sequencer("numbers" + std::to_string(i), 0));
    }
  }
  for (int times = 0; times < 4; ++times) {
    node_->checkpoints()->request();
    if (times % 2 != 0) std::this_thread::yield();
    ASSERT_NO_FATAL_FAILURE(start());
    Store store = connect();
    const auto map = *store.open_map("default");
    for (int i = 0; i < kValues; ++i) {
      ASSERT_TRUE(*map.get("key" + std::to_string(i))) << i;
      ASSERT_TRUE(store.open_sequencer("numbers" + std::to_string(i))) << i;
    }
  }
}

// A tmpfs stands for it; elsewhere stores alone would not be durable.
TEST_F(NodeWithData, ALogOnPersistentMemoryIsThereAgain) {
  config_.data.persistent_memory = true;
  if (log::MappedFolder::at(folder_.string())) {
    ASSERT_NO_FATAL_FAILURE(start());
  } else {
    EXPECT_NE(refusal().find("start it without data.persistent_memory"), std::string::npos)
        << mistake_;
  }
  node_.reset();
  const base::TemporaryFolder memory("/dev/shm");
  if (!log::MappedFolder::at(memory.string())) GTEST_SKIP() << "there is no tmpfs at /dev/shm";
  config_.data.dir = (memory / "data").string();
  for (int life = 0; life < 3; ++life) {
    ASSERT_NO_FATAL_FAILURE(start());
    Store store = connect();
    Map map = *store.open_map("default");
    EXPECT_EQ(*map.add("lives", 1), life + 1u);
    ASSERT_TRUE(map.put("long", std::string(100'000, static_cast<char>('a' + life))));
  }
  config_.data.persistent_memory = false;  // the files are the same
  ASSERT_NO_FATAL_FAILURE(start());
  EXPECT_EQ(*connect().open_map("default")->add("lives", 0), 3u);
}

TEST_F(NodeWithData, RegionsOnPersistentMemoryKeepTheirBytes) {
  config_.data.persistent_regions = true;
  EXPECT_NE(refusal().find("set data.persistent_memory"), std::string::npos) << mistake_;
  const base::TemporaryFolder memory("/dev/shm");
  ASSERT_TRUE(log::MappedFolder::at(memory.string())) << "/dev/shm is no tmpfs";
  config_.data.dir = (memory / "data").string();
  config_.data.persistent_memory = true;
  config_.data.persistent_regions = false;
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_TRUE(connect().create_region("volatile", 64));
  config_.data.persistent_regions = true;
  std::array<std::byte, 5> bytes{};
  const auto text = std::as_bytes(std::span("bytes", 5));
  for (int life = 0; life < 3; ++life) {
    node_.reset();
    ASSERT_NO_FATAL_FAILURE(start());
    Store store = connect();
    auto region = life == 0 ? store.create_region("kept", 10'000) : store.open_region("kept");
    ASSERT_TRUE(region);
    EXPECT_EQ(*region->fetch_add(16, 1), static_cast<std::uint64_t>(life));
    ASSERT_TRUE(region->read(8999, bytes));
    EXPECT_EQ(std::ranges::equal(bytes, text), life != 0);
    ASSERT_TRUE(region->write(8999, text));
    auto other = store.open_region("volatile");
    EXPECT_EQ(*other->fetch_add(0, 1), 0u);
    ASSERT_TRUE(store.create_region("dropped", 100));
    ASSERT_TRUE(store.drop_region("dropped"));
  }
  node_.reset();
  ASSERT_NO_FATAL_FAILURE(start());
  const std::filesystem::directory_iterator files(memory / "data" / "regions");
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "those of dropped ones are gone";
  config_.data.persistent_regions = false;
  node_.reset();
  EXPECT_NE(refusal().find("start it with data.persistent_regions"), std::string::npos) << mistake_;
  config_.data.persistent_regions = true;
  std::filesystem::remove_all(memory / "data" / "regions");
  EXPECT_NE(refusal().find("is missing"), std::string::npos) << mistake_;
}

TEST_F(NodeWithData, MetricsTellHowFarAStartHasCome) {
  constexpr int kWrites = 5000;
  config_.data.durability = Durability::async;
  ASSERT_NO_FATAL_FAILURE(start());
  {
    Store store = connect();
    Map map = *store.open_map("default");
    for (int i = 0; i < kWrites; ++i) ASSERT_TRUE(map.put(std::to_string(i), "value"));
    ASSERT_TRUE(store.await_durable());
  }
  node_.reset();
  node::HttpListener free_soon([] { return std::string(); });
  ASSERT_TRUE(free_soon.start(0));
  config_.metrics.port = free_soon.port();
  free_soon.stop();
  std::string page;
  std::string health;
  node::RecoveryProgress progress;
  options_.recovering = [&](const node::RecoveryProgress& now) {
    if (!page.empty()) return;
    progress = now;
    page = node::body_of(node::get(config_.metrics.port, "/metrics"));
    health = node::status_of(node::get(config_.metrics.port, "/healthz"));
  };
  ASSERT_NO_FATAL_FAILURE(start());
  const node::ReadMetrics then = node::MetricsReader::read(page);
  EXPECT_GT(progress.records, 0u);
  EXPECT_EQ(then.at("espalier_recovered_records").at(), static_cast<double>(progress.records));
  EXPECT_EQ(then.at("espalier_recovered_bytes").at(), static_cast<double>(progress.bytes));
  EXPECT_GE(then.at("espalier_recovery_expected_bytes").at(), static_cast<double>(progress.bytes));
  EXPECT_TRUE(then.at("espalier_connections").samples.empty());
  EXPECT_NE(health.find("503"), std::string::npos) << health;
  EXPECT_EQ(node::body_of(node::get(config_.metrics.port, "/healthz")), "ok");
  const node::ReadMetrics now =
      node::MetricsReader::read(node::body_of(node::get(config_.metrics.port, "/metrics")));
  EXPECT_GE(now.at("espalier_recovered_records").at(), kWrites);
  EXPECT_FALSE(now.at("espalier_connections").samples.empty());
}

TEST_F(NodeWithData, AFolderIsOneNodes) {
  ASSERT_NO_FATAL_FAILURE(start());
  config_.node.socket = (folder_ / "other").string();
  EXPECT_NE(refusal().find("another process uses it"), std::string::npos) << mistake_;
  config_.data.dir = (folder_ / "no" / "such").string();
  EXPECT_NE(refusal().find("cannot use the data folder"), std::string::npos) << mistake_;
}

TEST_F(NodeWithData, DamageIsNamed) {
  ASSERT_NO_FATAL_FAILURE(start());
  node_.reset();
  const std::filesystem::path store = folder_ / "data" / "store";
  const auto bytes = std::filesystem::file_size(store);
  std::filesystem::copy_file(store, folder_ / "kept");
  std::ofstream(store, std::ios::trunc) << std::string(bytes, 'x');
  EXPECT_NE(refusal().find("file store"), std::string::npos) << mistake_;
  std::filesystem::copy_file(folder_ / "kept", store,
                             std::filesystem::copy_options::overwrite_existing);
  ASSERT_NO_FATAL_FAILURE(start());
  node_.reset();
  // Another store's number: its log is not this one's.
  std::filesystem::remove(store);
  EXPECT_NE(refusal().find("another node's"), std::string::npos) << mistake_;
}

TEST_F(NodeWithData, WhatIsAnsweredEarlyIsThereOnceItIsSaidToBe) {
  config_.data.durability = Durability::async;
  Version version = 0;
  {
    ASSERT_NO_FATAL_FAILURE(start());
    Store store = connect();
    Map map = *store.open_map("default");
    for (int i = 0; i < 100; ++i) version = map.put(std::to_string(i), "value")->version;
    const auto state = store.await_durable();
    ASSERT_TRUE(state) << message(state.error());
    EXPECT_GE(state->durable, state->recorded);
    EXPECT_GE(store.durable_state()->durable, state->durable);
  }
  ASSERT_NO_FATAL_FAILURE(start());
  Store store = connect();
  Map map = *store.open_map("default");
  EXPECT_EQ((*map.get("99"))->value, "value");
  EXPECT_GT(map.put("0", "again")->version, version);
}

// Clients add to the word themselves, and the node sees nothing of that.
TEST_F(NodeWithData, NumbersThatClientsAddedAreNotGivenAgain) {
  config_.node.fabric = "shm:" + (folder_ / "fabric").string();
  config_.node.one_sided = true;
  const auto connect_to_memory = [&] {
    auto store = Store::connect(config_.node.fabric, {.access = Access::one_sided});
    EXPECT_TRUE(store) << message(store.error());
    return std::move(*store);
  };
  std::uint64_t end = 0;
  {
    ASSERT_NO_FATAL_FAILURE(start());
    Store store = connect_to_memory();
    Sequencer numbers = *store.create_sequencer("n", 5);
    for (int i = 0; i < 10; ++i) {
      const auto range = numbers.take(1u << 18);
      ASSERT_TRUE(range) << message(range.error());
      EXPECT_GE(range->first, end);
      end = range->first + range->count;
    }
    EXPECT_EQ(numbers.describe()->node_adds, 0u);
  }
  ASSERT_NO_FATAL_FAILURE(start());
  Store store = connect_to_memory();
  Sequencer numbers = *store.open_sequencer("n");
  EXPECT_EQ(numbers.epoch(), 2u);
  const auto range = numbers.take(1);
  ASSERT_TRUE(range) << message(range.error());
  EXPECT_GE(range->first, end);
}

// What is kept nowhere is in no record and in no checkpoint, and is there again, empty.
TEST_F(NodeWithData, ObjectsKeepWhatTheyPromisedThemselves) {
  ASSERT_NO_FATAL_FAILURE(start());
  {
    Store store = connect();
    MapOptions none{.versions = false};
    none.durability = Durability::none;
    Map cache = *store.create_map("cache", none);
    EXPECT_EQ(cache.options().durability, Durability::none);
    const std::uint64_t recorded = store.durable_state()->recorded;
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(cache.put(std::to_string(i), "v"));
    HashMapOptions early;
    early.durability = Durability::async;
    HashMap hash = *store.create_hash_map("early", early);
    TableOptions lost;
    lost.durability = Durability::none;
    Table rows = *store.create_table("rows", *Schema::parse("a i64 not null"), lost);
    RowWriter writer = rows.writer();
    ASSERT_TRUE(writer.add(std::int64_t{41}));
    EXPECT_EQ(writer.commit(), 0u);
    EXPECT_EQ(store.durable_state()->recorded, recorded + 2) << "that two were made";
    ASSERT_TRUE(hash.put("k", "v"));
    const auto state = store.await_durable();
    ASSERT_TRUE(state);
    EXPECT_NE(state->run, 0u);
    EXPECT_EQ(state->run, store.durable_state()->run);
  }
  node_->checkpoints()->request();
  const std::uint64_t deadline_ns = base::monotonic_ns() + 60'000'000'000;
  while (node_->checkpoints()->counts().finished == 0) {
    ASSERT_EQ(node_->checkpoints()->counts().failed, 0u);
    ASSERT_LT(base::monotonic_ns(), deadline_ns);
    std::this_thread::yield();
  }
  for (int again = 0; again < 2; ++again) {
    ASSERT_NO_FATAL_FAILURE(start());
    Store store = connect();
    EXPECT_EQ(store.open_map("cache")->count("", ""), 0u);
    EXPECT_EQ(store.open_map("cache")->options().durability, Durability::none);
    EXPECT_EQ(store.open_table("rows")->rows(), 0u);
    EXPECT_EQ((*store.open_hash_map("early")->get("k"))->value, "v");
    EXPECT_EQ((*store.hash_maps()).front().durability, Durability::async);
    EXPECT_EQ((*store.tables()).front().durability, Durability::none);
    ASSERT_TRUE(store.open_map("cache")->put("k", "v"));
  }
}

// As one of a hash map that promises what its node does.
TEST_F(NodeWithData, AHandleOfAHashMapThatPromisesSomethingFollowsARestart) {
  ASSERT_NO_FATAL_FAILURE(start());
  Store store = connect();
  HashMapOptions options;
  HashMap usual = *store.create_hash_map("usual", options);
  options.durability = Durability::sync;
  HashMap own = *store.create_hash_map("own", options);
  for (HashMap* const each : {&usual, &own}) ASSERT_TRUE(each->put("k", "v"));
  ASSERT_NO_FATAL_FAILURE(start());
  const std::uint64_t deadline_ns = base::monotonic_ns() + 60'000'000'000;
  for (HashMap* const each : {&usual, &own}) {
    auto got = each->get("k");
    while (!got && got.error().code == Code::connection_lost) {
      ASSERT_LT(base::monotonic_ns(), deadline_ns);
      got = each->get("k");
    }
    ASSERT_TRUE(got) << message(got.error());
    EXPECT_EQ((*got)->value, "v");
  }
}

TEST_F(NodeWithData, WhatCannotBeDurableIsRefusedInWords) {
  config_.maps.front().options.versions = false;
  EXPECT_NE(refusal().find("must keep versions"), std::string::npos) << mistake_;
  config_.maps.front().options.versions = true;
  ASSERT_NO_FATAL_FAILURE(start());
  Store store = connect();
  EXPECT_EQ(store.create_map("m", {.versions = false}).error().code, Code::unsupported);
  EXPECT_EQ(store.create_hash_map("h", {.versions = false}).error().code, Code::unsupported);
  TableOptions sealed{.key = *TableKey::parse("000102030405060708090a0b0c0d0e0f")};
  sealed.encrypted = true;
  sealed.durability = Durability::none;
  const auto table = store.create_table("t", *Schema::parse("a i64 not null"), sealed);
  ASSERT_FALSE(table);
  EXPECT_NE(table.error().words.find("given twice"), std::string::npos) << table.error().words;
}

}  // namespace
}  // namespace espalier::test
