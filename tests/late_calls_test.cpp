// SPDX-License-Identifier: Apache-2.0
// Calls after main(): from destructors of thread_local and static objects, and from atexit()
// functions. They work, wherever the store is. Each process here is a child that makes its own
// handles, and registers the late caller before the library has anything to clean up.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "espalier/espalier.h"
#include "espalier/query.hpp"
#include "espalier/regex.hpp"
#include "espalier/sequencer.hpp"
#include "espalier/table.hpp"
#include "tests/support/child.hpp"
#include "tests/support/forked_node.hpp"
#include "tests/support/node_config.hpp"

namespace espalier::test {
namespace {

/// What there is in such a process, for as long as it lives, and what it found wrong.
struct Late {
  Line* line = nullptr;
  std::string said;
  std::optional<Store> store;
  espalier_store* c_store = nullptr;
  std::function<Result<Store>()> connect;
};
Late* late = nullptr;

void expect(std::string_view when, std::string_view call, bool done) {
  if (!done) late->said.append(when).append(", ").append(call).append("\n");
}

struct Done final : Handler {
  void done(const Completion& completion) override { all = all && completion.ok; }
  bool all = true;
};

void use_map(const std::string& when) {
  auto map = late->store->open_map("m");
  if (!map) return expect(when, "open_map", false);
  expect(when, "put", map->put(when, "value").has_value());
  const auto found = map->get(when);
  expect(when, "get", found && *found && (*found)->value == "value");
  expect(when, "scan", map->scan("", "", [](std::span<const Item>) { return true; }).has_value());
  auto snapshot = map->snapshot();
  expect(when, "snapshot", snapshot && snapshot->count("", "").has_value());
  auto pipeline = Pipeline::open(*map, 4);
  if (!pipeline) return expect(when, "Pipeline::open", false);
  Done done;
  const Request request{.op = Op::get, .key = when};
  pipeline->run({&request, 1}, done);
  expect(when, "Pipeline::run", done.all);
}

void use_table(const std::string& when) {
  const auto table = late->store->open_table("t");
  if (!table) return expect(when, "open_table", false);
  RowWriter rows = table->writer();
  expect(when, "add", rows.add("shop").has_value());
  expect(when, "commit", rows.commit().has_value());
  const auto found = table->query().where(col("shop").matches("^s.*p$")).run();
  expect(when, "matches", found && found->size() >= 1);
  auto sequencer = late->store->open_sequencer("s");
  expect(when, "take", sequencer && sequencer->take().has_value());
}

void use_c(const std::string& when) {
  espalier_map* map = nullptr;
  const espalier_bytes key{when.data(), when.size()};
  expect(when, "C open", espalier_map_open(late->c_store, espalier_text("m"), &map) == ESPALIER_OK);
  expect(when, "C put", espalier_map_put(map, key, key, nullptr) == ESPALIER_OK);
  expect(when, "C error",
         espalier_map_put(map, {nullptr, 0}, key, nullptr) != ESPALIER_OK &&
             *espalier_error_message() != '\0');
  espalier_map_close(map);
}

void use(const std::string& when) {
  use_map(when);
  use_table(when);
  use_c(when);
  const auto other = late->connect();
  expect(when, "another store", other.has_value());
}

struct AtEnd {
  std::string when;
  ~AtEnd() { use(when); }
  void be_there() const {}
};

void end_late_in_thread(bool use_before) {
  std::thread([&] {
    static thread_local AtEnd of_thread{use_before ? "end of a thread" : "first use at the end"};
    of_thread.be_there();
    if (use_before) use("in a thread");
  }).join();
}

/// Ends by exit().
int live(Line& line, const std::function<Result<Store>()>& connect) {
  late = new Late;
  late->line = &line;
  late->connect = connect;
  std::atexit([] {
    // The last of all: what is registered first is called last.
    late->store.reset();
    late->line->send(late->said + "ended\n");
  });
  static thread_local AtEnd of_thread{"end of the main thread"};
  of_thread.be_there();
  static AtEnd of_process{"static destructor"};
  std::atexit([] { use("atexit"); });
  auto store = connect();
  if (!store) return 1;
  late->store.emplace(std::move(*store));
  espalier_store_options options = ESPALIER_STORE_OPTIONS_INIT;
  options.memory_bytes_max = std::uint64_t{64} << 20;
  options.huge_pages = 0;
  espalier_map* map = nullptr;
  if (!late->store->create_map("m") || !late->store->create_sequencer("s") ||
      !late->store->create_table("t", *Schema::parse("shop char(4)")) ||
      espalier_store_open("embedded", &options, &late->c_store) != ESPALIER_OK ||
      espalier_map_create(late->c_store, espalier_text("m"), nullptr, &map) != ESPALIER_OK) {
    return 2;
  }
  espalier_map_close(map);
  end_late_in_thread(true);
  end_late_in_thread(false);
  use("before the end");
  std::exit(0);
}

std::string said_by(const std::function<Result<Store>()>& connect) {
  std::fflush(nullptr);  // or the child writes it a second time
  Child child([&](Line& line) { return live(line, connect); });
  std::string said;
  if (!child.line().receive(said)) said = "it died\n";
  if (const int code = child.wait(); code != 0) said += "with " + std::to_string(code);
  return said;
}

TEST(LateCalls, WorkInThisProcess) {
  EXPECT_EQ(said_by([] {
              return Store::open({.memory_bytes_max = std::uint64_t{64} << 20,
                                  .huge_pages = false,
                                  .regexes = regular_expressions()});
            }),
            "ended\n");
}

TEST(LateCalls, WorkOnANode) {
  const base::TemporaryFolder folder;
  node::Config config = node_config(folder);
  config.node.fabric = "shm:" + (folder / "fabric").string() + " roce://127.0.0.1:0/1";
  config.node.one_sided = true;
  config.node.leases = kLeasesThatLast;
  for (const std::string way : {"unix", "shm", "roce", "shm_one_sided", "roce_one_sided"}) {
    ForkedNode node(config);
    std::string address = "unix:" + config.node.socket;
    for (const std::string& fabric : node.fabric_addresses()) {
      if (fabric.starts_with(way.substr(0, way.find('_')))) address = fabric;
    }
    StoreOptions options;
    if (way.ends_with("_one_sided")) options.access = Access::one_sided;
    EXPECT_EQ(said_by([&] { return Store::connect(address, options); }), "ended\n") << way;
    EXPECT_EQ(node.stop(), "");
  }
}

}  // namespace
}  // namespace espalier::test
