// SPDX-License-Identifier: Apache-2.0
// Conformance: one workload in process, and through a node over each transport by rings, by
// one-sided walks, and through a device before the node, with its balancer and without. All places
// must answer alike.
//
// Versions count each map's own writes, which are made in the same order. So only their properties
// are compared: they grow with each write, and reads return those of writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "node/metrics.hpp"
#include "tests/support/conformance_requests.hpp"
#include "tests/support/node_fixture.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/store.hpp"

namespace espalier::test {
namespace {

/// One of the two sides: executes requests, and returns their results.
class AskedSide {
 public:
  AskedSide(Store store, const MapOptions& options) : store_(std::move(store)) {
    auto made = store_.create_map("tested", options);
    if (!made) throw std::runtime_error(message(made.error()));
    map_.emplace(*made);
  }
  /// Of a map over several nodes that was made. `borders`: batches keep to one shard, and versions
  /// of several are not compared.
  AskedSide(Store store, std::vector<std::string> borders)
      : store_(std::move(store)), borders_(std::move(borders)) {
    auto opened = store_.open_map("tested");
    if (!opened) throw std::runtime_error(message(opened.error()));
    map_.emplace(*opened);
  }

  [[nodiscard]] Store& store() { return store_; }
  [[nodiscard]] Map& map() { return *map_; }

  std::string written(const Result<Written>& result) {
    if (!result) return error_text(result.error());
    std::string said = result->applied ? "applied" : "not applied";
    if (result->existed) said += ", existed";
    const bool versions = map_->options().versions;
    if (result->applied && versions && result->version != 0 && borders_.empty()) {
      if (result->version <= newest_) said += ", and its version is old";
      newest_ = result->version;
    }
    if (result->version == 0) said += ", no version";
    return said;
  }
  [[nodiscard]] std::string found(const Result<std::optional<Found>>& result) const {
    if (!result) return error_text(result.error());
    if (!*result) return "nothing";
    return (*result)->value + known((*result)->version);
  }
  [[nodiscard]] std::string found(const Result<std::optional<FoundItem>>& result) const {
    if (!result) return error_text(result.error());
    if (!*result) return "nothing";
    return (*result)->key + ": " + (*result)->value + known((*result)->version);
  }
  template <class Reader>
  std::string scanned(const Reader& reader, std::string_view low, std::string_view high,
                      ScanOptions options, std::size_t stop_after) const {
    std::string said;
    std::size_t taken = 0;
    const auto count = reader.scan(
        low, high,
        [&](std::span<const Item> run) {
          for (const Item& item : run) {
            // Runs may be cut anywhere, so what comes after the wish to stop does not count.
            if (taken == stop_after) return false;
            said.append(item.key).append("=").append(item.value).append(known(item.version));
            said += '\n';
            ++taken;
          }
          return taken < stop_after;
        },
        options);
    if (!count) return error_text(count.error());
    if (taken < stop_after) said += std::to_string(*count);
    return said;
  }
  void learn(Version version) { newest_ = std::max(newest_, version); }
  static std::string number(const Result<std::uint64_t>& result) {
    return result ? std::to_string(*result) : error_text(result.error());
  }

 private:
  // A leaf that is merged may give its items the version of the merge, which no answer has named;
  // when leaves are merged depends on the order in which writes in flight are done.
  [[nodiscard]] std::string known(Version version) const {
    const bool yet_to_come = version > newest_ && version > map_->stats()->write_version;
    return yet_to_come ? " of a version to come" : "";
  }

  Store store_;
  std::optional<Map> map_;
  std::vector<std::string> borders_;
  Version newest_ = 0;

 public:
  std::optional<Snapshot> snapshot;  // destroyed before its store
};

class ConformanceTest : public NodeFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    reach_by(GetParam());
    borders().clear();
    start();
  }

  /// `more`: so many items in advance, and sometimes many requests at the same time.
  void run(const MapOptions& options, std::uint64_t seed, std::uint64_t steps,
           std::uint64_t more = 0) {
    SCOPED_TRACE(seed_text(seed));
    AskedSide sides[] = {AskedSide(open_store(), options), there(options)};
    for (AskedSide& side : sides) ASSERT_NO_FATAL_FAILURE(fill(side, more));
    Random random(seed);
    for (std::uint64_t step = 0; step < steps; ++step) {
      const std::uint64_t what = random();
      std::string said[2];
      for (int i = 0; i < 2; ++i) {
        Random same(what);
        const bool many = more != 0 && step % 40 == 0;
        said[i] = many ? get_many(sides[i], same, more) : do_one(sides[i], same);
      }
      ASSERT_EQ(said[0], said[1]) << "step " << step;
    }
    EXPECT_EQ(sides[0].map().stats()->items, sides[1].map().stats()->items);
    if (switch_) {
      EXPECT_GT(switch_->redirected(), 0u) << "nothing went by its tables";
    }
  }

  /// Puts so many items between those of the workload.
  static void fill(AskedSide& side, std::uint64_t items) {
    constexpr std::uint64_t kTogether = 100;
    for (std::uint64_t from = 0; from < items; from += kTogether) {
      WriteBatch batch;
      for (std::uint64_t i = from; i < std::min(items, from + kTogether); ++i) {
        batch.put("key" + std::to_string(i) + '+', "more");
      }
      ASSERT_EQ(side.written(side.map().write(batch)), "applied");
    }
  }

  /// Of those items most.
  static std::string get_many(AskedSide& side, Random& random, std::uint64_t items) {
    auto opened = Pipeline::open(side.map(), 256);
    if (!opened) return error_text(opened.error());
    std::vector<std::string> keys(4'000);
    std::vector<Request> gets(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      keys[i] = "key" + std::to_string(random.below(items + items / 10)) + '+';
      gets[i] = {.op = random.one_in(10) ? Op::floor : Op::get, .tag = i, .key = keys[i]};
    }
    Gather gather;
    opened->run(gets, gather);
    return gather.all();
  }

  /// The remote side.
  AskedSide there(const MapOptions& options) {
    if (!is_sharded()) return AskedSide(connect(), options);
    borders() = way_ == "sharded_three" ? std::vector<std::string>{"key2", "key5xx"}
                                        : std::vector<std::string>{"key35"};
    make_sharded("tested", options, borders());
    return AskedSide(connect(), borders());
  }
  /// Of the map; empty: it lies on one node.
  static std::vector<std::string>& borders() {
    static std::vector<std::string> all;
    return all;
  }
  static std::ptrdiff_t shard_of(const std::string& key) {
    return std::ranges::upper_bound(borders(), key) - borders().begin();
  }

  static std::string key(Random& random) { return conformance_key(random); }
  static std::string value(Random& random) { return conformance_value(random); }

  static std::string do_one(AskedSide& side, Random& random) {
    switch (random.below(18)) {
      case 0:
      case 1:
      case 2: return write(side, random);
      case 3: return side.written(side.map().erase(key(random)));
      case 4:
      case 5: return side.found(side.map().get(key(random)));
      case 6: return side.found(side.map().floor(key(random)));
      case 7:
      case 8: return scan(side, side.map(), random);
      case 9: {
        const std::string low = key(random);
        return AskedSide::number(side.map().count(low, key(random)));
      }
      case 10: return write_batch(side, random);
      case 11: return modify(side, random);
      case 12: return use_snapshot(side, random);
      case 13: return use_maps(side, random);
      case 14: return pipeline(side, random);
      case 15: return compare_and_set(side, random);
      case 16: return use_counters(side, random);
      default: return estimate(side, random);
    }
  }
  static std::string write(AskedSide& side, Random& random) {
    const std::string name = key(random);
    const std::string bytes = value(random);
    switch (random.below(4)) {
      case 0: return side.written(side.map().insert(name, bytes));
      case 1: return side.written(side.map().update(name, bytes));
      default: return side.written(side.map().put(name, bytes));
    }
  }
  template <class Reader>
  static std::string scan(AskedSide& side, const Reader& reader, Random& random) {
    ScanOptions options;
    options.reverse = random.one_in(3);
    options.from_floor = random.one_in(3);
    if (random.one_in(2)) options.limit = random.below(100);
    if (random.one_in(3)) options.parts = static_cast<std::uint32_t>(random.below(12));
    const std::string low = random.one_in(4) ? std::string() : key(random);
    const std::string high = random.one_in(4) ? std::string() : key(random);
    const std::size_t stop_after = random.one_in(4) ? random.between(1, 50) : ~std::size_t{0};
    return side.scanned(reader, low, high, options, stop_after);
  }
  static std::string write_batch(AskedSide& side, Random& random) {
    WriteBatch batch;
    const std::string first = key(random);
    for (std::uint64_t n = random.below(random.one_in(10) ? 300 : 6); n != 0; --n) {
      std::string name = key(random);
      if (shard_of(name) != shard_of(first)) name = first;  // no batch crosses a border
      switch (random.below(7)) {
        case 0: batch.erase(name); break;
        case 1: batch.only_if_absent(name); break;
        case 2: batch.only_if_present(name); break;
        case 3: batch.only_if_value(name, value(random)); break;
        default: batch.put(name, value(random)); break;
      }
    }
    return side.written(side.map().write(batch));
  }
  static std::string modify(AskedSide& side, Random& random) {
    const std::string name = key(random);
    const std::string bytes = value(random);
    const bool erase = random.one_in(3);
    std::string seen;
    const auto written = side.map().modify(name, [&](std::optional<std::string_view> now) {
      seen = now ? std::string(*now) : "nothing";
      return erase ? std::nullopt : std::optional(bytes);
    });
    return seen + side.written(written);
  }
  static std::string compare_and_set(AskedSide& side, Random& random) {
    const std::string name = key(random);
    const std::string bytes = value(random);
    std::optional<std::string> expected;
    const auto now = side.map().get(name);
    if (now && *now) expected = (*now)->value;
    if (random.one_in(3)) expected = value(random);
    if (random.one_in(4)) expected.reset();
    std::optional<std::string_view> desired(bytes);
    if (random.one_in(4)) desired.reset();
    return side.written(side.map().compare_and_set(name, expected, desired));
  }
  static std::string use_counters(AskedSide& side, Random& random) {
    const std::string name =
        random.one_in(4) ? key(random) : "counter" + std::to_string(random.below(3));
    if (random.one_in(2)) return AskedSide::number(side.map().add(name, random()));
    const std::string sequencer = random.one_in(20) ? std::string(256, 's') : name;
    return AskedSide::number(
        side.store().sequence(sequencer, static_cast<std::uint32_t>(random.below(5))));
  }
  static std::string use_snapshot(AskedSide& side, Random& random) {
    if (!side.snapshot) {
      auto taken = side.map().snapshot();
      if (!taken) return error_text(taken.error());
      side.snapshot.emplace(std::move(*taken));
    }
    if (random.one_in(4)) {
      side.snapshot.reset();
      return "let go";
    }
    switch (random.below(4)) {
      case 0: return side.found(side.snapshot->get(key(random)));
      case 1: return side.found(side.snapshot->floor(key(random)));
      case 2: {
        const std::string low = key(random);
        return AskedSide::number(side.snapshot->count(low, key(random)));
      }
      default: return scan(side, *side.snapshot, random);
    }
  }
  static std::string use_maps(AskedSide& side, Random& random) {
    constexpr const char* kNames[] = {"one", "two", "", "tested"};
    const std::string name = random.one_in(20) ? std::string(256, 'n') : random.pick(kNames);
    switch (random.below(4)) {
      case 0: {
        MapOptions options;
        options.node_bytes = random.one_in(5) ? 1000 : 1024;
        options.log_bytes = random.one_in(5) ? 63 : 256;
        const auto made = side.store().create_map(name, options);
        return made ? made->name() + std::to_string(made->max_key_bytes())
                    : error_text(made.error());
      }
      case 1: {
        if (name == "tested") return "kept";
        const auto dropped = side.store().drop_map(name);
        return dropped ? "dropped" : error_text(dropped.error());
      }
      case 2: {
        const auto opened = side.store().open_map(name);
        return opened ? std::to_string(opened->options().node_bytes) : error_text(opened.error());
      }
      default: {
        std::string all;
        const auto names = side.store().map_names();
        if (!names) return error_text(names.error());
        for (const std::string& each : *names) {
          if (each != "default") all += each + ' ';  // the node's own
        }
        return all;
      }
    }
  }
  static std::string estimate(AskedSide& side, Random& random) {
    const std::string low = key(random);
    // An estimate is by the shape of the tree, which is not always the same.
    const auto estimated = side.map().count_estimate(low, key(random));
    return estimated ? "some" : error_text(estimated.error());
  }

  static std::string pipeline(AskedSide& side, Random& random) {
    auto opened = Pipeline::open(side.map(), static_cast<std::uint32_t>(random.between(1, 64)));
    if (!opened) return error_text(opened.error());
    const auto requests =
        random.one_in(2) ? ConformanceRequests::writes(random) : ConformanceRequests::reads(random);
    Gather gather;
    opened->run(requests.all(), gather);
    side.learn(gather.newest);
    return gather.all();
  }
};

class ConformanceByRings : public ConformanceTest {};
class ConformanceInDeepTrees : public ConformanceTest {};

constexpr const char* kRings[] = {"unix", "shm", "roce"};
constexpr const char* kAlone[] = {"shm_one_sided", "roce_one_sided"};
constexpr const char* kDevice[] = {"device"};
constexpr const char* kRemembering[] = {"shm_one_sided", "device", "device_balanced"};
constexpr const char* kSwitch[] = {"in_network"};
constexpr const char* kDatagrams[] = {"datagram"};
constexpr const char* kSharded[] = {"sharded", "sharded_three", "sharded_one_sided"};
constexpr const char* kShardedByRings[] = {"sharded", "sharded_three"};
INSTANTIATE_TEST_SUITE_P(Rings, ConformanceTest, ::testing::ValuesIn(kRings), way_name);
INSTANTIATE_TEST_SUITE_P(Alone, ConformanceTest, ::testing::ValuesIn(kAlone), way_name);
INSTANTIATE_TEST_SUITE_P(Device, ConformanceTest, ::testing::ValuesIn(kDevice), way_name);
INSTANTIATE_TEST_SUITE_P(Remembering, ConformanceInDeepTrees, ::testing::ValuesIn(kRemembering),
                         way_name);
INSTANTIATE_TEST_SUITE_P(Switch, ConformanceTest, ::testing::ValuesIn(kSwitch), way_name);
INSTANTIATE_TEST_SUITE_P(Datagrams, ConformanceTest, ::testing::ValuesIn(kDatagrams), way_name);
INSTANTIATE_TEST_SUITE_P(Datagrams, ConformanceByRings, ::testing::ValuesIn(kDatagrams), way_name);
INSTANTIATE_TEST_SUITE_P(Shards, ConformanceTest, ::testing::ValuesIn(kSharded), way_name);
INSTANTIATE_TEST_SUITE_P(Shards, ConformanceByRings, ::testing::ValuesIn(kShardedByRings),
                         way_name);
INSTANTIATE_TEST_SUITE_P(Rings, ConformanceByRings, ::testing::ValuesIn(kRings), way_name);
INSTANTIATE_TEST_SUITE_P(Device, ConformanceByRings, ::testing::ValuesIn(kDevice), way_name);

TEST_P(ConformanceTest, AnswersAreTheSame) {
  run(MapOptions{}, base::seed_from_environment(1), steps_or(scaled(2'000)));
}

TEST_P(ConformanceTest, AnswersAreTheSameInSmallNodes) {
  MapOptions options;
  options.node_bytes = 512;
  options.log_bytes = 64;
  run(options, base::seed_from_environment(2), steps_or(scaled(1'500)));
}

// Only places with load and store may walk these, so one-sided reads are refused.
TEST_P(ConformanceByRings, AnswersAreTheSameWithoutVersions) {
  MapOptions options;
  options.versions = false;
  run(options, base::seed_from_environment(3), steps_or(scaled(1'500)));
}

// So deep that nodes below the root are cached, too. A device with a balancer reads many of these
// from the host's memory although it has them cached; and devices relay some gets to the host.
TEST_P(ConformanceInDeepTrees, AnswersAreTheSameWhereverNodesAreRead) {
  MapOptions options;
  options.node_bytes = 512;
  options.log_bytes = 64;
  run(options, base::seed_from_environment(4), steps_or(scaled(800)), 5'000);
  if (!is_device()) return;
  const node::NodeNumbers numbers =
      device_->with_node([](const node::Node* node) { return node::numbers_of(*node); });
  EXPECT_GT(numbers.value("device_hits"), 0u);
  EXPECT_EQ(numbers.value("device_balanced") != 0, way_ == "device_balanced");
}

// What the random ones meet too seldom.
TEST_P(ConformanceTest, RefusalsAreTheSame) {
  AskedSide sides[] = {AskedSide(open_store(), MapOptions{}), there({})};
  std::vector<std::string> said[2];
  const std::string too_long((16u << 20) + 1, 'v');
  const std::string long_key(1'000, 'k');
  for (int i = 0; i < 2; ++i) {
    AskedSide& side = sides[i];
    const auto say = [&](const std::string& text) { said[i].push_back(text); };
    const auto batch = [&](auto fill) {
      WriteBatch made;
      fill(made);
      say(side.written(side.map().write(made)));
    };
    say(side.written(side.map().put("", too_long)));
    say(side.written(side.map().put("a", too_long)));
    say(side.written(side.map().put(long_key, too_long)));
    say(side.written(side.map().modify(
        "a", [&](std::optional<std::string_view>) { return std::optional(too_long); })));
    batch([&](WriteBatch&) {});
    batch([&](WriteBatch& made) { made.only_if_absent(long_key); });
    batch([&](WriteBatch& made) { made.put(long_key, too_long); });
    batch([&](WriteBatch& made) { made.put("a", too_long).only_if_present(""); });
    batch([&](WriteBatch& made) { made.put("a", too_long).only_if_present("a"); });
    batch([&](WriteBatch& made) { made.put("a", too_long + too_long + too_long); });
    batch([&](WriteBatch& made) { made.put("a", "1").only_if_absent("b").only_if_present("c"); });
    batch([&](WriteBatch& made) {
      for (int n = 0; n < 65'537; ++n) made.put("a", "1");
    });
    batch([&](WriteBatch& made) {
      for (int n = 0; n < 65'536; ++n) made.put("a", std::to_string(n));
    });
    batch([&](WriteBatch& made) {
      for (int n = 0; n < 65'537; ++n) made.only_if_present("a");
      made.put("a", "1");
    });
    say(side.found(side.map().get("a")));
    say(AskedSide::number(side.map().count(long_key, "")));
    say(AskedSide::number(side.map().count("", long_key)));
    say(AskedSide::number(side.map().count_estimate(long_key, "")));
    say(side.scanned(side.map(), "a", "b", {.limit = 3, .reverse = true, .from_floor = true}, 9));
  }
  ASSERT_EQ(said[0].size(), said[1].size());
  for (std::size_t i = 0; i < said[0].size(); ++i) EXPECT_EQ(said[0][i], said[1][i]) << i;
}

}  // namespace
}  // namespace espalier::test
