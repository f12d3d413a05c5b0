// SPDX-License-Identifier: Apache-2.0
// Forks: the parent keeps all; in the child every call on earlier objects returns `forked`, even if
// other threads held locks, and new stores work.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "espalier/espalier.h"
#include "espalier/offload.hpp"
#include "espalier/query.hpp"
#include "espalier/sequencer.hpp"
#include "espalier/table.hpp"
#include "tests/support/child.hpp"
#include "tests/support/forked_node.hpp"
#include "tests/support/node_config.hpp"
#include "tests/support/store.hpp"

namespace espalier::test {
namespace {

const Error& as_error(const Error& error) { return error; }
const Error& as_error(const TableError& error) { return error.error; }

/// Collects what a child finds wrong, to send it to the parent.
class Complaints {
 public:
  template <class R>
  void expect_forked(std::string_view call, const R& result) {
    if (result) return add(call, "was done");
    if (const Error& error = as_error(result.error()); error.code != Code::forked) {
      add(call, message(error));
    }
  }
  void expect_forked(std::string_view call, espalier_code code) {
    if (code != ESPALIER_FORKED) add(call, espalier_code_name(code));
  }
  void expect(std::string_view what, bool holds) {
    if (!holds) add(what, "does not hold");
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void add(std::string_view call, std::string_view what) {
    text_.append(call).append(": ").append(what).append("\n");
  }
  std::string text_;
};

struct Codes final : Handler {
  void done(const Completion& completion) override {
    seen.push_back(completion.ok ? Code::invalid : completion.error.code);
  }
  std::vector<Code> seen;
};

enum class Exit { by_exit, at_once };

bool in_forked_child = false;

/// Runs in a child, which ends by exit() or _exit(), and returns its complaints.
std::string run_in_child(const std::function<void(Complaints&)>& body, Exit way = Exit::by_exit) {
  std::fflush(nullptr);  // or a child that exits writes it a second time
  Child child([&](Line& line) {
    in_forked_child = true;
    Complaints complaints;
    body(complaints);
    line.send(complaints.text());
    if (way == Exit::by_exit) std::exit(0);
    return 0;
  });
  std::string said;
  if (!child.line().receive(said)) said = "it died\n";
  if (const int code = child.wait(); code != 0) {
    said += "it ended with " + std::to_string(code) + "\n";
  }
  return said;
}

/// A store with something of each kind, made before a fork.
struct Handles {
  explicit Handles(Store made) : store(std::move(made)) {
    map = *store.create_map("fruit");
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(map->put("key " + std::to_string(i), "value " + std::to_string(i)));
    }
    snapshot.emplace(*map->snapshot());
    EXPECT_TRUE(map->put("later", "than the snapshot"));
    pipeline.emplace(*Pipeline::open(*map, 8));
    table = *store.create_table("sales", *Schema::parse("id i64 not null, shop char(3)"));
    writer.emplace(table->writer());
    EXPECT_TRUE(writer->add(1, "ab"));
    EXPECT_TRUE(writer->commit());
    EXPECT_TRUE(writer->add(2, "cd"));
    prepared = *table->query().prepare();
    rows.emplace(*table->query().stream());
    sequencer = *store.create_sequencer("orders");
  }

  Store store;
  std::optional<Map> map;
  std::optional<Snapshot> snapshot;
  std::optional<Pipeline> pipeline;
  std::optional<Table> table;
  std::optional<RowWriter> writer;
  std::optional<PreparedQuery> prepared;
  std::optional<RowStream> rows;
  std::optional<Sequencer> sequencer;
};

void expect_store_forked(Complaints& complaints, Store& store) {
  const auto forked = [&](std::string_view call, const auto& result) {
    complaints.expect_forked(call, result);
  };
  const Schema schema = *Schema::parse("id i64 not null");
  forked("create_map", store.create_map("m"));
  forked("open_map", store.open_map("fruit"));
  forked("drop_map", store.drop_map("fruit"));
  forked("create_table", store.create_table("t", schema));
  forked("open_table", store.open_table("sales"));
  forked("drop_table", store.drop_table("sales"));
  forked("tables", store.tables());
  forked("sequence", store.sequence("s"));
  forked("create_sequencer", store.create_sequencer("q"));
  forked("open_sequencer", store.open_sequencer("orders"));
  forked("drop_sequencer", store.drop_sequencer("orders"));
  forked("sequencers", store.sequencers());
  forked("memory_bytes", store.memory_bytes());
  forked("map_names", store.map_names());
  constexpr KindRow kKind{
      .number = ObjectKind{200}, .name = "kind", .create_number = 129, .open_number = 130};
  forked("call", store.call({.number = 128, .name = "call"}));
  forked("create_object", store.create_object(kKind, "o"));
  forked("open_object", store.open_object(kKind, "o"));
  forked("drop_object", store.drop_object(kKind, "o"));
  forked("object_names", store.object_names(kKind));
  complaints.expect("there is a page_message()", !store.page_message().empty());
  store.trim();
}

void expect_map_forked(Complaints& complaints, Map& map) {
  const auto forked = [&](std::string_view call, const auto& result) {
    complaints.expect_forked(call, result);
  };
  std::string value;
  const auto sink = [](std::span<const Item>) { return true; };
  WriteBatch batch;
  batch.put("a", "b");
  forked("get", map.get("key 1"));
  forked("get into", map.get("key 1", value));
  forked("put", map.put("a", "b"));
  forked("insert", map.insert("a", "b"));
  forked("update", map.update("key 1", "b"));
  forked("erase", map.erase("key 1"));
  forked("modify", map.modify("key 1", [](auto) { return std::nullopt; }));
  forked("compare_and_set", map.compare_and_set("a", std::nullopt, "b"));
  forked("add", map.add("n", 1));
  forked("write", map.write(batch));
  forked("scan", map.scan("", "", sink));
  forked("scan of one", map.scan("", "", sink, {.limit = 1}));
  forked("floor", map.floor("key 1"));
  forked("count", map.count("", ""));
  forked("count_estimate", map.count_estimate("", ""));
  forked("snapshot", map.snapshot());
  forked("Pipeline::open", Pipeline::open(map));
  complaints.expect("audit() says so", map.audit().size() == 1 &&
                                           map.audit().front().find("forked") != std::string::npos);
  complaints.expect("the map has its name", map.name() == "fruit");
  complaints.expect("the map has its options", map.options().node_bytes == MapOptions{}.node_bytes);
  complaints.expect("the map knows how long keys are", map.max_key_bytes() == 460);
}

void expect_rest_forked(Complaints& complaints, Handles& handles) {
  const auto forked = [&](std::string_view call, const auto& result) {
    complaints.expect_forked(call, result);
  };
  const Snapshot& snapshot = *handles.snapshot;
  forked("Snapshot::get", snapshot.get("key 1"));
  forked("Snapshot::floor", snapshot.floor("key 1"));
  forked("Snapshot::count", snapshot.count("", ""));
  forked("Snapshot::scan", snapshot.scan("", "", [](std::span<const Item>) { return true; }));
  static_cast<void>(snapshot.version());
  Codes codes;
  const Request requests[] = {{.op = Op::put, .key = "a", .value = "b"},
                              {.op = Op::get, .key = "key 1"}};
  handles.pipeline->run(requests, codes);
  handles.pipeline->submit(requests, codes);
  complaints.expect("what is submitted completes with forked",
                    codes.seen == std::vector<Code>(4, Code::forked));
  complaints.expect("poll() waits for nothing", handles.pipeline->poll() == 0);
  complaints.expect("advance() has nothing to do", handles.pipeline->advance() == 0);
  const Table& table = *handles.table;
  forked("Table::describe", table.describe());
  forked("Table::rows", table.rows());
  forked("Table::read_rows", table.read_rows());
  forked("Query::run", table.query().run());
  forked("Query::stream", table.query().stream());
  forked("Query::prepare", table.query().prepare());
  forked("RowWriter::commit", handles.writer->commit());
  forked("PreparedQuery::run", handles.prepared->run());
  forked("PreparedQuery::stream", handles.prepared->stream());
  forked("RowStream::next", handles.rows->next());
  static_cast<void>(handles.rows->stats());
  handles.rows->cancel();
  forked("Sequencer::take", handles.sequencer->take());
  forked("Sequencer::seal", handles.sequencer->seal());
  forked("Sequencer::advance", handles.sequencer->advance());
  forked("Sequencer::follow", handles.sequencer->follow());
  forked("Sequencer::describe", handles.sequencer->describe());
}

void expect_forked(Complaints& complaints, Handles& handles) {
  expect_store_forked(complaints, handles.store);
  expect_map_forked(complaints, *handles.map);
  expect_rest_forked(complaints, handles);
}

/// That a process's own store works, and what it wrote is there.
void expect_works(Complaints& complaints, const Result<Store>& store, std::string_view map_name) {
  complaints.expect("a store of its own", store.has_value());
  if (!store) return;
  auto map = store->open_map(map_name);
  complaints.expect("a map of it", map.has_value());
  if (!map) return;
  complaints.expect("a put", map->put("child", "was here").has_value());
  const auto found = map->get("child");
  complaints.expect("and a get", found && *found && (*found)->value == "was here");
}

class ForkTest : public ::testing::TestWithParam<const char*> {
 protected:
  ForkTest() {
    way_ = GetParam();
    if (way_ == "embedded") return;
    config_.maps = {{"default", {}}};
    config_.node.one_sided = true;
    config_.node.leases = kLeasesThatLast;
    config_.node.fabric = "shm:" + (folder_ / "fabric").string() + " roce://127.0.0.1:0/1";
    node_.emplace(config_);
    one_sided_ = way_.ends_with("_one_sided");
    if (way_ == "unix") address_ = "unix:" + config_.node.socket;
    for (const std::string& address : node_->fabric_addresses()) {
      if (address.starts_with(way_.substr(0, way_.find('_')))) address_ = address;
    }
  }
  ~ForkTest() override {
    if (node_) {
      EXPECT_EQ(node_->stop(), "");
    }
  }

  [[nodiscard]] Result<Store> connect() const {
    const std::uint64_t memory_bytes = std::uint64_t{64} << 20;
    if (way_ == "embedded") {
      auto store = Store::open({.memory_bytes_max = memory_bytes, .huge_pages = false});
      if (store) {
        EXPECT_TRUE(store->create_map("default"));
      }
      return store;
    }
    return Store::connect(address_, {.access = one_sided_ ? Access::one_sided : Access::rpc});
  }

  base::TemporaryFolder folder_;
  node::Config config_ = node_config(folder_);
  std::optional<ForkedNode> node_;
  std::string way_;
  std::string address_;
  bool one_sided_ = false;
};
INSTANTIATE_TEST_SUITE_P(By, ForkTest,
                         ::testing::Values("embedded", "unix", "shm", "roce", "shm_one_sided",
                                           "roce_one_sided"),
                         [](const auto& way) { return std::string(way.param); });

// Snapshots, pipelines and streams end with their session: they still work, so it still exists.
TEST_P(ForkTest, AChildIsRefusedAndItsParentGoesOn) {
  auto handles = std::make_unique<Handles>(*connect());
  EXPECT_EQ(*handles->map->get("key 1") ? (*handles->map->get("key 1"))->value : "", "value 1");
  for (const Exit way : {Exit::by_exit, Exit::at_once}) {
    EXPECT_EQ(run_in_child(
                  [&](Complaints& complaints) {
                    expect_forked(complaints, *handles);
                    expect_works(complaints, connect(), "default");
                    handles.reset();
                    expect_works(complaints, connect(), "default");
                  },
                  way),
              "");
    // A child that touches nothing, except through destructors of its threads and statics.
    EXPECT_EQ(run_in_child([](Complaints&) {}, way), "");
    EXPECT_EQ(*handles->snapshot->count("", ""), 100u);
    Codes codes;
    const Request request{.op = Op::get, .key = "key 7"};
    handles->pipeline->run({&request, 1}, codes);
    EXPECT_EQ(codes.seen, std::vector<Code>{Code::invalid});
  }
  EXPECT_TRUE(handles->writer->commit());
  const auto rows = handles->rows->next();
  ASSERT_TRUE(rows && *rows);
  EXPECT_EQ((*rows)->size(), 1u);
  EXPECT_EQ(*handles->table->rows(), 2u);
  EXPECT_EQ(handles->prepared->run()->size(), 2u);
  EXPECT_EQ(handles->sequencer->take()->first, 0u);
  EXPECT_EQ(*handles->map->count("", ""), 101u);
}

TEST_P(ForkTest, AChildOfAChildIsRefusedToo) {
  const Store parents = *connect();
  EXPECT_EQ(run_in_child([&](Complaints& complaints) {
              const auto own = connect();
              expect_works(complaints, own, "default");
              const std::string said = run_in_child([&](Complaints& more) {
                more.expect_forked("the grandparent's", parents.open_map("default"));
                more.expect_forked("the parent's", own->open_map("default"));
                expect_works(more, connect(), "default");
              });
              complaints.expect("the grandchild's complaints: " + said, said.empty());
              expect_works(complaints, own, "default");
            }),
            "");
  EXPECT_TRUE(parents.open_map("default"));
}

// A process that dies leaves no session to a child of it that lives on. Over a fabric the end of a
// connection is no end of its session, which the node keeps for a while in any case.
TEST_P(ForkTest, ASessionEndsWithItsProcess) {
  if (way_ != "unix") return;
  pid_t grandchild = -1;
  Child child([&](Line& line) {
    const auto store = connect();
    if (!store || !store->open_map("default")->put("k", "v")) return 1;
    const pid_t forked = ::fork();
    if (forked == 0) {
      for (;;) ::pause();
    }
    line.send({reinterpret_cast<const char*>(&forked), sizeof forked});
    for (;;) ::pause();
  });
  std::string said;
  ASSERT_TRUE(child.line().receive(said));
  ASSERT_EQ(said.size(), sizeof grandchild);
  std::memcpy(&grandchild, said.data(), sizeof grandchild);
  child.kill();
  EXPECT_EQ(child.wait(), -SIGKILL);
  node_->idle_numbers();  // once no client is connected
  EXPECT_EQ(::kill(grandchild, SIGKILL), 0);
}

/// Threads that write and read keys of their own, and count together, until this is destroyed.
class Hammers {
 public:
  explicit Hammers(const Store& store) : map_(*store.open_map("default")) {
    for (int i = 0; i < 4; ++i) threads_.emplace_back([this, i] { work(std::to_string(i)); });
  }
  ~Hammers() {
    stopping_ = true;
    for (std::thread& thread : threads_) thread.join();
    EXPECT_EQ(wrong_, 0u);
    EXPECT_EQ(*map_.add("sum", 0), added_);
  }
  void await_more() const {
    const std::uint64_t until = added_ + 100;
    while (added_ < until && wrong_ == 0) std::this_thread::yield();
  }

 private:
  void work(const std::string& name) {
    for (int i = 0; !stopping_; ++i) {
      const std::string key = name + " " + std::to_string(i % 16);
      const std::string value = key + " as of " + std::to_string(i);
      if (!map_.put(key, value)) ++wrong_;
      const auto found = map_.get(key);
      if (!found || !*found || (*found)->value != value) ++wrong_;
      if (!map_.add("sum", 1)) ++wrong_;
      ++added_;
    }
  }

  Map map_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> wrong_{0};
  std::atomic<std::uint64_t> added_{0};
  std::vector<std::thread> threads_;
};

// With any locks held at that moment.
TEST_P(ForkTest, WhileOtherThreadsWork) {
  std::optional<Store> store(*connect());
  std::optional<Map> map(*store->open_map("default"));
  const Hammers hammers(*store);
  for (int i = 0; i < 8; ++i) {
    hammers.await_more();
    const std::string said = run_in_child(
        [&](Complaints& complaints) {
          complaints.expect_forked("get", map->get("sum"));
          complaints.expect_forked("add", map->add("sum", 1));
          expect_works(complaints, connect(), "default");
          std::thread([&] { expect_works(complaints, connect(), "default"); }).join();
          if (i % 2 == 0) store.reset();
        },
        i % 4 < 2 ? Exit::by_exit : Exit::at_once);
    EXPECT_EQ(said, "");
  }
}

/// Handles of the C API, made before a fork.
struct CHandles {
  CHandles() {
    options.memory_bytes_max = std::uint64_t{64} << 20;
    options.huge_pages = 0;
    piped.done = [](void*, const espalier_completion*) {};
    EXPECT_EQ(espalier_store_open("embedded", &options, &store), ESPALIER_OK);
    EXPECT_EQ(espalier_map_create(store, espalier_text("m"), nullptr, &map), ESPALIER_OK);
    EXPECT_EQ(espalier_snapshot_open(map, &snapshot), ESPALIER_OK);
    EXPECT_EQ(espalier_pipeline_open(map, &piped, &pipeline), ESPALIER_OK);
    EXPECT_EQ(espalier_sequencer_create(store, espalier_text("s"), 0, &sequencer), ESPALIER_OK);
    EXPECT_EQ(espalier_item_create(&item), ESPALIER_OK);
  }
  /// Whether all could be given back.
  bool give_back() {
    espalier_item_destroy(item);
    espalier_sequencer_close(sequencer);
    espalier_snapshot_close(snapshot);
    const bool closed = espalier_pipeline_close(pipeline) == ESPALIER_OK;
    espalier_map_close(map);
    return closed && espalier_store_close(store) == ESPALIER_OK;
  }

  espalier_store_options options = ESPALIER_STORE_OPTIONS_INIT;
  espalier_pipeline_options piped = ESPALIER_PIPELINE_OPTIONS_INIT;
  espalier_store* store = nullptr;
  espalier_map* map = nullptr;
  espalier_snapshot* snapshot = nullptr;
  espalier_pipeline* pipeline = nullptr;
  espalier_sequencer* sequencer = nullptr;
  espalier_item* item = nullptr;
};

void expect_c_forked(Complaints& complaints, const CHandles& c) {
  const auto forked = [&](std::string_view call, espalier_code code) {
    complaints.expect_forked(call, code);
  };
  const espalier_bytes key = espalier_text("k");
  const auto visit = [](void*, const espalier_entry*, std::size_t) { return 0; };
  const auto named = [](void*, espalier_bytes) { return 0; };
  std::uint64_t number = 0;
  std::uint32_t found = 0;
  std::size_t left = 0;
  espalier_map* other = nullptr;
  espalier_snapshot* another = nullptr;
  espalier_map_stats stats = ESPALIER_MAP_STATS_INIT;
  espalier_number_range range{};
  espalier_request request{};
  request.op = ESPALIER_OP_GET;
  request.key = key;
  forked("map_create", espalier_map_create(c.store, key, nullptr, &other));
  forked("map_open", espalier_map_open(c.store, espalier_text("m"), &other));
  forked("map_drop", espalier_map_drop(c.store, espalier_text("m")));
  forked("map_list", espalier_map_list(c.store, named, nullptr));
  forked("sequence", espalier_sequence(c.store, key, 1, &number));
  forked("get_stats", espalier_map_get_stats(c.map, &stats));
  forked("get", espalier_map_get(c.map, key, c.item, &found));
  forked("floor", espalier_map_floor(c.map, key, c.item, &found));
  forked("put", espalier_map_put(c.map, key, key, nullptr));
  forked("erase", espalier_map_erase(c.map, key, nullptr));
  forked("add", espalier_map_add(c.map, key, 1, &number));
  forked("scan", espalier_map_scan(c.map, {}, {}, nullptr, visit, nullptr, nullptr));
  forked("count", espalier_map_count(c.map, {}, {}, &number));
  forked("snapshot_open", espalier_snapshot_open(c.map, &another));
  forked("snapshot_get", espalier_snapshot_get(c.snapshot, key, c.item, &found));
  forked("pipeline_submit", espalier_pipeline_submit(c.pipeline, &request, 1));
  forked("pipeline_run", espalier_pipeline_run(c.pipeline, &request, 1));
  forked("pipeline_poll", espalier_pipeline_poll(c.pipeline, &left));
  forked("sequencer_take", espalier_sequencer_take(c.sequencer, 1, &range));
  forked("sequencer_seal", espalier_sequencer_seal(c.sequencer, nullptr));
}

TEST(Fork, CCallsAreRefusedInAChild) {
  CHandles c;
  EXPECT_EQ(run_in_child([&](Complaints& complaints) {
              expect_c_forked(complaints, c);
              complaints.expect("all is given back", c.give_back());
              espalier_store* own = nullptr;
              complaints.expect("one of its own opens",
                                espalier_store_open("embedded", &c.options, &own) == ESPALIER_OK);
              complaints.expect("and closes", espalier_store_close(own) == ESPALIER_OK);
            }),
            "");
  EXPECT_EQ(espalier_map_put(c.map, espalier_text("k"), espalier_text("v"), nullptr), ESPALIER_OK);
  EXPECT_TRUE(c.give_back());
}

TEST(Fork, SecretsAreNotInherited) {
  std::array<std::byte, ClientSecret::kBytes> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 1);
  auto secret = ClientSecret::make("client", bytes);
  ASSERT_TRUE(secret) << message(secret.error());
  auto key = TableKey::make(std::span(bytes).first<TableKey::kBytes>());
  ASSERT_TRUE(key) << message(key.error());
  EXPECT_EQ(run_in_child([&](Complaints& complaints) {
              complaints.expect_forked("connect",
                                       Store::connect("roce://127.0.0.1:9/1", {.secret = *secret}));
              Store own = open_store();
              complaints.expect_forked("create_table",
                                       own.create_table("t", *Schema::parse("id i64 not null"),
                                                        {.encrypted = true, .key = *key}));
              complaints.expect("there is no such table", own.tables()->empty());
              secret = std::unexpected(SecretError{});
              key = std::unexpected(TableError{});
            }),
            "");
}

}  // namespace
}  // namespace espalier::test

// The leak sanitizer calls this as a process exits. In a copy it cannot see the stacks of the
// parent's threads, and handles leave their memory there.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() { return espalier::test::in_forked_child ? 1 : 0; }
