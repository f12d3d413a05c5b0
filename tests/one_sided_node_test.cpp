// SPDX-License-Identifier: Apache-2.0
// Clients of a real node that walk its maps by one-sided READs, over shared memory and over RoCEv2:
// they get the answers of clients that send requests.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "espalier/espalier.h"
#include "kinds/map/write/map_core.hpp"
#include "node/metrics.hpp"
#include "tests/support/node_fixture.hpp"
#include "tests/support/recorder.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/version_replay.hpp"

namespace espalier::test {
namespace {

class OneSidedNode : public NodeFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  OneSidedNode() {
    reach_by(GetParam());
    config_.node.one_sided = true;
    config_.node.leases = kLeasesThatLast;
  }
  [[nodiscard]] Store connect_one_sided() const {
    auto store = Store::connect(address(), {.access = Access::one_sided});
    EXPECT_TRUE(store) << message(store.error());
    return std::move(*store);
  }
  /// How many such calls the node has had.
  [[nodiscard]] std::uint64_t asked_for(wire::OffloadId id) const {
    for (const node::OffloadNumbers& offload : node::numbers_of(*node_).offloads) {
      if (offload.id == id) return offload.requests;
    }
    return 0;
  }
};

using Items = std::vector<std::pair<std::string, std::string>>;

Items scan(const Map& map, std::string_view low, std::string_view high, ScanOptions options) {
  Items items;
  const auto scanned = map.scan(
      low, high,
      [&](std::span<const Item> some) {
        for (const Item& item : some) items.emplace_back(item.key, item.value);
        return true;
      },
      options);
  EXPECT_TRUE(scanned) << message(scanned.error());
  return items;
}

// Reads of snapshots go to the node, with hints from the client's cache.
TEST_P(OneSidedNode, ReadsOfSnapshotsBringHints) {
  start();
  Store store = connect_one_sided();
  Map map = *store.create_map("m", {.node_bytes = 512, .log_bytes = 128});
  const auto key_of = [](int i) { return "key" + std::to_string(1'000 + i); };
  for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(map.put(key_of(i), "before"));
  for (int i = 0; i < 1'000; i += 3) ASSERT_TRUE(map.get(key_of(i)));
  auto snapshot = *map.snapshot();
  for (int i = 0; i < 1'000; i += 7) ASSERT_TRUE(map.put(key_of(i), "after"));
  const auto core = *node_->catalog().open<tree::MapCore>("m");
  const std::uint64_t refused = core->hints.refused.sum();
  for (int i = 0; i < 1'000; i += 5) {
    const auto found = snapshot.get(key_of(i));
    ASSERT_TRUE(found && *found);
    EXPECT_EQ((*found)->value, "before");
    const auto floor = snapshot.floor(key_of(i) + "+");
    ASSERT_TRUE(floor && *floor);
    EXPECT_EQ((*floor)->key, key_of(i));
  }
  const std::uint64_t hints =
      core->hints.admitted.sum() + core->hints.moved.sum() + core->hints.refused.sum();
  EXPECT_GE(hints, 300u);
  EXPECT_LT(core->hints.refused.sum() - refused, hints / 2);
}

TEST_P(OneSidedNode, AnswersAsWhoAsks) {
  start();
  Store asking = connect();
  Map asked = *asking.create_map("m", {.node_bytes = 1024, .log_bytes = 256});
  std::map<std::string, std::string> model;
  Random random(seed_from_environment(5));
  for (int i = 0; i < 2000; ++i) {
    const std::string key = "key" + std::to_string(random.below(3000));
    const std::string value(random.one_in(20) ? random.below(9000) : random.below(60), 'v');
    ASSERT_TRUE(asked.put(key, value));
    model[key] = value;
  }
  Store reading = connect_one_sided();
  Map read = *reading.open_map("m");
  const std::uint64_t asked_before = asked_for(wire::OffloadId::get);
  for (int i = 0; i < 600; ++i) {
    const std::string key = "key" + std::to_string(random.below(3000));
    const auto found = read.get(key);
    ASSERT_TRUE(found) << message(found.error());
    const auto expected = model.find(key);
    ASSERT_EQ(found->has_value(), expected != model.end()) << key;
    if (*found) {
      ASSERT_EQ((*found)->value, expected->second);
    }
  }
  EXPECT_EQ(asked_for(wire::OffloadId::get), asked_before) << "reads went by the rings";
  EXPECT_EQ(scan(read, "", "", {}), Items(model.begin(), model.end()));
  EXPECT_EQ(scan(read, "key1", "key2", {.limit = 50}), scan(asked, "key1", "key2", {.limit = 50}));
  EXPECT_EQ(scan(read, "key1", "key2", {.reverse = true}),
            scan(asked, "key1", "key2", {.reverse = true}));
  const auto floor = read.floor("key15z");
  const auto floor_asked = asked.floor("key15z");
  ASSERT_TRUE(floor && floor_asked);
  ASSERT_TRUE(*floor && *floor_asked);
  EXPECT_EQ((*floor)->key, (*floor_asked)->key);
  // Writes go through the rings, and are visible to READs immediately.
  ASSERT_TRUE(read.put("new", "value"));
  const auto found = read.get("new");
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->value, "value");
  EXPECT_EQ(read.get("").error().code, Code::key_too_long);
  EXPECT_EQ(read.get(std::string(500, 'k')).error().code, Code::key_too_long);
}

TEST_P(OneSidedNode, ADroppedMapIsGone) {
  start();
  Store asking = connect();
  ASSERT_TRUE(asking.create_map("m"));
  Store reading = connect_one_sided();
  Map read = *reading.open_map("m");
  ASSERT_TRUE(read.put("key", "value"));
  ASSERT_TRUE(*read.get("key"));
  ASSERT_TRUE(asking.drop_map("m"));
  const auto gone = read.get("key");
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::not_found);
  // The session continues.
  ASSERT_TRUE(asking.create_map("other"));
  Map other = *reading.open_map("other");
  ASSERT_TRUE(other.put("key", "again"));
  const auto found = other.get("key");
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->value, "again");
}

TEST_P(OneSidedNode, TheNodeTellsWhoHoldsMemory) {
  start();
  ASSERT_TRUE(connect().create_map("m"));
  {
    Store reading = connect_one_sided();
    Map read = *reading.open_map("m");
    ASSERT_TRUE(read.put("key", "value"));
    ASSERT_TRUE(*read.get("key"));
    const auto snapshot = read.snapshot();
    ASSERT_TRUE(snapshot) << message(snapshot.error());
    const node::NodeNumbers numbers = node::numbers_of(*node_);
    EXPECT_EQ(numbers.value("leases"), 1u);
    std::string lease;
    std::string held;
    for (const memory::Holder& holder : numbers.holders) {
      using Kind = memory::Holder::Kind;
      if (holder.kind == Kind::lease) lease = holder.owner;
      if (holder.kind == Kind::snapshot) held = holder.object + " by " + holder.owner;
    }
    EXPECT_TRUE(lease.starts_with("session ")) << lease;
    EXPECT_TRUE(held.starts_with("m by session ")) << held;
  }
  // Its end is noticed by the worker that served it.
  while (node::numbers_of(*node_).value("leases") != 0) std::this_thread::yield();
}

TEST_P(OneSidedNode, ANodeThatOffersNothingSaysSo) {
  config_.node.one_sided = false;
  start();
  const auto refused = Store::connect(address(), {.access = Access::one_sided});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unsupported);
  EXPECT_TRUE(connect().create_map("asked for"));
}

/// What became of each request, by its tag.
struct Answers : Handler {
  explicit Answers(std::size_t count) : values(count), codes(count), items_of(count) {}
  void done(const Completion& completion) override {
    ++completed;
    codes[completion.tag] = completion.error.code;
    if (completion.found) values[completion.tag] = std::string(completion.value);
  }
  bool items(std::uint64_t tag, std::span<const Item> items) override {
    for (const Item& item : items) items_of[tag].emplace_back(item.key, item.value);
    return true;
  }
  std::vector<std::optional<std::string>> values;
  std::vector<Code> codes;
  std::vector<Items> items_of;
  std::size_t completed = 0;
};

TEST_P(OneSidedNode, APipelineReadsAloneAndWritesByItsRings) {
  start();
  ASSERT_TRUE(connect().create_map("m", {.node_bytes = 1024, .log_bytes = 256}));
  Store reading = connect_one_sided();
  Map map = *reading.open_map("m");
  auto pipeline = Pipeline::open(map, 16);
  ASSERT_TRUE(pipeline) << message(pipeline.error());
  std::vector<std::string> keys;
  for (int i = 0; i < 1000; ++i) keys.push_back("key" + std::to_string(10'000 + i));
  std::vector<Request> requests(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    requests[i] = {.op = Op::put, .tag = i, .key = keys[i], .value = keys[i]};
  }
  Answers written(keys.size());
  pipeline->run(requests, written);
  EXPECT_EQ(written.completed, keys.size());
  // Reads and writes mixed: each completes once, under its own tag.
  const std::string new_value = "new";
  for (std::size_t i = 0; i < keys.size(); ++i) {
    requests[i].op = i % 5 == 0 ? Op::put : i % 7 == 0 ? Op::scan : Op::get;
    requests[i].value = i % 5 == 0 ? std::string_view(new_value) : std::string_view();
    requests[i].limit = 3;
  }
  Answers read(keys.size());
  pipeline->run(requests, read);
  EXPECT_EQ(read.completed, keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(read.codes[i], Code::invalid) << i;
    if (requests[i].op == Op::get) {
      ASSERT_EQ(read.values[i], keys[i]) << i;
    } else if (requests[i].op == Op::scan) {
      ASSERT_EQ(read.items_of[i].size(), std::min<std::size_t>(3, keys.size() - i)) << i;
      ASSERT_EQ(read.items_of[i].front().first, keys[i]);
    }
  }
  Answers polled(10);
  pipeline->submit(std::span(requests).subspan(1, 4), polled);
  while (pipeline->poll() != 0) continue;
  EXPECT_EQ(polled.completed, 4u);
  // Requests on a dropped map report that.
  ASSERT_TRUE(connect().drop_map("m"));
  Answers gone(keys.size());
  pipeline->run(std::span(requests).subspan(1, 4), gone);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_EQ(gone.codes[i], Code::not_found) << i;
}

TEST_P(OneSidedNode, AMapWithoutVersionsIsRefused) {
  start();
  Store asking = connect();
  ASSERT_TRUE(asking.create_map("m", {.versions = false}));
  Store reading = connect_one_sided();
  Map read = *reading.open_map("m");
  const auto refused = read.get("key");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unsupported);
  auto pipeline = Pipeline::open(read);
  ASSERT_TRUE(pipeline) << message(pipeline.error());
  const Request requests[] = {{.op = Op::put, .tag = 0, .key = "key", .value = "value"},
                              {.op = Op::get, .tag = 1, .key = "key"}};
  Answers answers(2);
  pipeline->run(requests, answers);
  EXPECT_EQ(answers.codes[0], Code::invalid);
  EXPECT_EQ(answers.codes[1], Code::unsupported);
}

TEST_P(OneSidedNode, TheCApiReadsAloneToo) {
  start();
  ASSERT_TRUE(connect().create_map("m"));
  espalier_store_options options = ESPALIER_STORE_OPTIONS_INIT;
  options.access = ESPALIER_ACCESS_ONE_SIDED;
  espalier_store* store = nullptr;
  ASSERT_EQ(espalier_store_open(address().c_str(), &options, &store), ESPALIER_OK)
      << espalier_error_message();
  espalier_map* map = nullptr;
  ASSERT_EQ(espalier_map_open(store, {"m", 1}, &map), ESPALIER_OK);
  ASSERT_EQ(espalier_map_put(map, {"key", 3}, {"value", 5}, nullptr), ESPALIER_OK);
  espalier_item* item = nullptr;
  ASSERT_EQ(espalier_item_create(&item), ESPALIER_OK);
  std::uint32_t found = 0;
  ASSERT_EQ(espalier_map_get(map, {"key", 3}, item, &found), ESPALIER_OK);
  EXPECT_EQ(found, 1u);
  const espalier_bytes value = espalier_item_value(item);
  EXPECT_EQ(std::string(static_cast<const char*>(value.data), value.size), "value");
  EXPECT_EQ(node::numbers_of(*node_).value("leases"), 1u);
  espalier_item_destroy(item);
  espalier_map_close(map);
  EXPECT_EQ(espalier_store_close(store), ESPALIER_OK);
}

INSTANTIATE_TEST_SUITE_P(Ways, OneSidedNode, ::testing::Values("shm", "roce"), way_name);

TEST_F(NodeFixture, UnixAddressesHaveNoOneSidedAccess) {
  config_.node.one_sided = true;
  start();
  const auto refused = Store::connect(address(), {.access = Access::one_sided});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unsupported);
}

// The receiver of a scan's items may take longer than a lease lasts without a renewal. Later items
// are still of the scan's version.
class OneSidedSinkConcurrency : public OneSidedNode {};

/// A scan whose sink waits behind its first items until enough is so, while all values change.
class SlowScan {
 public:
  SlowScan(Store& asking, const Store& reading) : asked_(*asking.open_map("m")) {
    for (int i = 0; i < 1000; ++i) keys_.push_back("key" + std::to_string(10'000 + i));
    for (const std::string& key : keys_) EXPECT_TRUE(asked_.put(key, "old"));
    read_.emplace(*reading.open_map("m"));
  }
  Result<std::uint64_t> run(const std::function<bool()>& is_enough) {
    bool waited = false;
    return read_->scan("", "", [&](std::span<const Item> some) {
      for (const Item& item : some) items_.emplace_back(item.key, item.value);
      if (std::exchange(waited, true)) return true;
      for (const std::string& key : keys_) EXPECT_TRUE(asked_.put(key, "new"));
      while (!is_enough()) std::this_thread::yield();
      return true;
    });
  }
  /// So many items as there are, of before anything changed.
  void expect_items_of_before(std::size_t count) const {
    ASSERT_EQ(items_.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(items_[i].first, keys_[i]);
      ASSERT_EQ(items_[i].second, "old") << keys_[i];
    }
  }
  void expect_that_the_session_goes_on() const {
    const auto found = read_->get(keys_.front());
    ASSERT_TRUE(found) << message(found.error());
    ASSERT_TRUE(*found);
    EXPECT_EQ((*found)->value, "new");
  }
  [[nodiscard]] std::size_t keys() const { return keys_.size(); }
  [[nodiscard]] std::size_t delivered() const { return items_.size(); }

 private:
  Map asked_;
  std::optional<Map> read_;
  std::vector<std::string> keys_;
  Items items_;
};

// How busy a machine is decides how long a lease must be not to be lost, so that is tried: where
// one was lost, the scan has the end of such scans, and the next lease lasts twice as long.
TEST_P(OneSidedSinkConcurrency, MayTakeLongerThanALeaseLasts) {
  constexpr std::uint64_t kLongestNs = 64'000'000'000;
  config_.node.leases = {.lost_after_ns = 500'000'000};
  for (;; config_.node.leases.lost_after_ns *= 2) {
    start();
    Store asking = connect();
    ASSERT_TRUE(asking.create_map("m", {.node_bytes = 1024, .log_bytes = 256}));
    Store reading = connect_one_sided();
    SlowScan scan(asking, reading);
    const base::LeaseTable& leases = node_->store().leases;
    bool lost = false;
    std::optional<base::Stopwatch> watch;
    const auto scanned = scan.run([&] {
      if (!watch) watch.emplace();
      lost = leases.size() == 0;
      return lost || watch->elapsed_ns() > config_.node.leases.lost_after_ns * 6 / 5;
    });
    if (!lost && scanned) {
      scan.expect_items_of_before(scan.keys());
      scan.expect_that_the_session_goes_on();
      return;
    }
    ASSERT_FALSE(scanned);
    EXPECT_EQ(scanned.error().code, Code::contended);
    ASSERT_LT(config_.node.leases.lost_after_ns, kLongestNs) << "none is long enough";
  }
}

// Its version may be gone: it ends, and has delivered nothing else.
TEST_P(OneSidedSinkConcurrency, EndsWhenItsLeaseIsLost) {
  start();
  Store asking = connect();
  ASSERT_TRUE(asking.create_map("m", {.node_bytes = 1024, .log_bytes = 256}));
  Store reading = connect_one_sided();
  SlowScan scan(asking, reading);
  base::LeaseTable& leases = node_->store().leases;
  bool asked_for_sweep = false;
  const auto scanned = scan.run([&] {
    // As a node that needs the memory: whose lease holds the oldest epoch is to lose it.
    if (!std::exchange(asked_for_sweep, true)) leases.ask_for_sweep(leases.oldest() + 1);
    return leases.size() == 0;
  });
  ASSERT_FALSE(scanned);
  EXPECT_EQ(scanned.error().code, Code::contended);
  EXPECT_LT(scan.delivered(), scan.keys());
  scan.expect_items_of_before(scan.delivered());
  // Another lease is had by itself.
  scan.expect_that_the_session_goes_on();
}

INSTANTIATE_TEST_SUITE_P(Ways, OneSidedSinkConcurrency, ::testing::Values("shm", "roce"), way_name);

// Threads that send requests and write, and threads with one-sided reads, over one node: one
// history.
class OneSidedNodeConcurrency : public OneSidedNode {};

TEST_P(OneSidedNodeConcurrency, AllAnswersAreOfOneHistory) {
  start();
  Store asking = connect();
  Map asked = *asking.create_map("m", {.node_bytes = 512, .log_bytes = 128});
  Store reading = connect_one_sided();
  Map read = *reading.open_map("m");
  const std::uint64_t seed = seed_from_environment(11);
  SCOPED_TRACE(seed_text(seed));
  Clock clock(Clock::Source::machine);
  std::vector<Recorder> recorders;
  for (std::uint32_t i = 0; i < 4; ++i) recorders.emplace_back(i < 2 ? asked : read, clock, i);
  std::atomic<bool> over{false};
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        Random random(seed + i);
        Recorder& recorder = recorders[i];
        for (std::uint64_t n = 0; n < scaled(3000) && (i < 2 || !over); ++n) {
          const std::string key = "k" + std::to_string(random.below(60));
          if (i < 2) {
            const std::string value(random.one_in(10) ? random.below(2000) : random.below(30), 'v');
            random.one_in(3) ? recorder.erase(key) : recorder.put(key, std::to_string(n) + value);
          } else if (random.one_in(4)) {
            recorder.scan(key, "", {.limit = 5});
          } else if (random.one_in(4)) {
            recorder.floor(key);
          } else {
            recorder.get(key);
          }
        }
        if (i < 2) over = true;
      });
    }
  }
  History history;
  for (Recorder& recorder : recorders) {
    ASSERT_EQ(recorder.unexpected().value_or(""), "");
    for (Operation& operation : recorder.log()) history.operations.push_back(std::move(operation));
  }
  EXPECT_EQ(replay_versions(history).value_or(""), "");
}

INSTANTIATE_TEST_SUITE_P(Ways, OneSidedNodeConcurrency, ::testing::Values("shm", "roce"), way_name);

}  // namespace
}  // namespace espalier::test
