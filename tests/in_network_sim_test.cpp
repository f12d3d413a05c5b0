// SPDX-License-Identifier: Apache-2.0
// A map behind a switch: a node, a client that walks the map by READs, and between them a switch
// whose tables a controller compiled from the map's tree. Gets through it take one trip, and their
// answers are right whatever becomes of packets, tables and map.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "dataplane/process_switch.hpp"
#include "fabric/roce/endpoint.hpp"
#include "fabric/roce/packet_network.hpp"
#include "fabric/testing/seeds.hpp"
#include "offload/map_reads.hpp"
#include "place/index_follower.hpp"
#include "place/one_sided_reader.hpp"
#include "tests/support/lying_tables.hpp"
#include "tree/testing/map_objects.hpp"

namespace espalier::test {
namespace {

using fabric::roce::PacketNetwork;
using fabric::roce::PortAddress;
using fabric::roce::RoceEndpoint;
using offload::MapReads;

constexpr const char* kPrefix = "user";

struct Got {
  bool done = false;
  bool found = false;
  Code error = Code::invalid;
  std::string value;
};

/// One get in flight, and every value that its key had meanwhile; none: it was not there.
struct Get final : Handler {
  std::string key;
  Request request;
  Got got;
  std::set<std::string> may_be;
  void done(const Completion& completion) override {
    got = {true, completion.found, completion.error.code,
           completion.found ? std::string(completion.value) : std::string()};
  }
};

class SwitchWorld {
 public:
  SwitchWorld(std::uint64_t seed, const MapOptions& options, std::uint32_t keys,
              std::uint64_t delay_max_ns = 1000)
      : network(seed),
        store(tree::make_store()),
        context(store, *store.epochs.join(), 0),
        map(*tree::create_map(store, "map", options)),
        user(context, map),
        host(network.open(address(2)), *fabric::RegionTable::create(seed + 1),
             fabric::NumberSource::of_seed(seed + 2)),
        client(network.open(address(1)), *fabric::RegionTable::create(seed + 3),
               fabric::NumberSource::of_seed(seed + 4)),
        host_done(host, 1024),
        client_done(client, 1024) {
    network.faults.delay_max_ns = delay_max_ns;  // more than the least: READs have no order
    for (std::uint32_t i = 0; i < keys; ++i) put(key(i), "value " + std::to_string(i));
    shared = std::make_shared<fabric::SharedMap>(*MapReads::create(store, map, kPrefix));
    keyed = *host.regions().offer_shared(shared, fabric::SharedKind::keyed);
    redirect =
        *host.regions().offer_shared(shared, fabric::SharedKind::redirect, store.region.bytes());
    own = *host.regions().offer({store.region.at(0), store.region.bytes()},
                                fabric::RemoteRights::read, kDomain);
    EXPECT_TRUE(host.regions().admit(*shared, own.remote().key));
    network.middle = [this](const PortAddress& from, const PortAddress& to,
                            std::span<std::byte> ib) {
      if (on_packet) on_packet();
      through.process(from, to, ib);
    };
    connect();
  }
  ~SwitchWorld() {
    if (reader) {
      reader->fail();
      reader->poll();
    }
    network.middle = nullptr;
  }

  static constexpr fabric::Domain kDomain = 1;
  static PortAddress address(std::uint8_t last) {
    return {fabric::roce::IpAddress::v4(10, 0, 0, last), 4791};
  }
  static std::string key(std::uint32_t i) {
    std::string digits = std::to_string(i);
    return kPrefix + std::string(7 - digits.size(), '0') + digits;
  }
  void put(const std::string& name, const std::string& value) {
    user.put(name, value);
    model[name] = value;
    for (const auto& get : gets) {
      if (get->key == name) get->may_be.insert("+" + value);
    }
  }
  [[nodiscard]] dataplane::MapKeys keys() const {
    return {keyed.remote().key, redirect.remote().key};
  }
  void install(const dataplane::TableLimits& limits = {}) {
    place::IndexFollower follower(keys(), kPrefix, redirect.remote().base, limits);
    place::LocalRegion region(store.region.at(0));
    auto slot = *store.epochs.join();
    slot.enter();
    ASSERT_TRUE(follower.follow(*map, region));
    slot.exit();
    install(follower.tables());
  }
  /// Tables that came from elsewhere. Requires: check() accepts them.
  void install(const dataplane::IndexTables& to) {
    tables = to;
    dataplane::PacketFunction with;
    with.add(keys(), tables);
    function.install(with);
  }
  void clear() { function.install({}); }
  [[nodiscard]] dataplane::IndexTables lying(base::Random& random) const {
    return lying_tables(tables, redirect.remote().base, store.region.bytes(), random);
  }
  void use_switch(std::uint32_t bytes = 4096) {
    reader->read_by_key({keyed.remote().key, kPrefix, bytes});
  }
  void turn() {
    host.progress();
    client.progress();
    if (reader) {
      reader->poll();
      if (const auto asked = reader->lease().due(network.now_ns())) answer_lease(*asked);
    }
    network.advance(5'000);
  }
  void answer_lease(const place::LeaseGuard::Asked& asked) {
    const std::uint64_t now = network.now_ns();
    if (asked.id == 0) {
      const auto granted = store.leases.grant(1, now);
      return reader->lease().granted(granted.id, granted.epoch, now, now);
    }
    const auto renewed = store.leases.renew(asked.id, asked.oldest, now);
    if (!renewed) return reader->lease().lost();
    reader->lease().renewed(*renewed, now);
  }
  void ask(const std::string& name) {
    auto& get = gets.emplace_back(std::make_unique<Get>());
    get->key = name;
    get->request.op = Op::get;
    get->request.key = get->key;
    const auto found = model.find(name);
    get->may_be.insert(found == model.end() ? "-" : "+" + found->second);
    reader->submit(tree::WalkRequest{&get->request, get.get(), nullptr, {}, {}});
  }
  /// What is wrong with the answers that have come; forgets them.
  std::string validate() {
    std::string wrong;
    std::erase_if(gets, [&](const auto& get) {
      if (!get->got.done) return false;
      if (get->got.error != Code::invalid) {
        ++errors;
      } else if (!get->may_be.contains(get->got.found ? "+" + get->got.value : "-")) {
        wrong = get->key + " was answered by '" + get->got.value + "'";
      }
      ++answers;
      return true;
    });
    return wrong;
  }
  /// Asks and waits. Returns how many trips it took.
  std::uint64_t trips_of(const std::string& name) {
    const std::uint64_t before = reader->traffic().round_trips;
    ask(name);
    for (int i = 0; i < 100'000 && !gets.back()->got.done; ++i) turn();
    EXPECT_EQ(errors, 0u);
    EXPECT_EQ(validate(), "");
    EXPECT_TRUE(gets.empty());
    return reader->traffic().round_trips - before;
  }

  PacketNetwork network;
  tree::StoreCore store;
  tree::ThreadContext context;
  std::shared_ptr<tree::MapCore> map;
  tree::MapUser user;
  RoceEndpoint host;
  RoceEndpoint client;
  fabric::CompletionQueue host_done;
  fabric::CompletionQueue client_done;
  std::shared_ptr<fabric::SharedMap> shared;
  fabric::Registration keyed;
  fabric::Registration redirect;
  fabric::Registration own;
  dataplane::InstalledFunction function;
  dataplane::ProcessSwitch through{function};
  dataplane::IndexTables tables;  // installed last, cleared or not
  std::function<void()> on_packet;
  std::unique_ptr<fabric::QueuePair> host_pair;
  std::unique_ptr<fabric::QueuePair> client_pair;
  std::map<std::string, std::string> model;
  std::deque<std::unique_ptr<Get>> gets;
  std::uint64_t answers = 0;
  std::uint64_t errors = 0;
  std::unique_ptr<place::OneSidedReader> reader;

 private:
  void connect() {
    ASSERT_TRUE(host.listen("7"));
    fabric::QueuePairOptions options;
    options.sends = &client_done;
    client_pair = *client.connect(fabric::roce::to_text(address(2)) + "/7", options, {});
    for (int i = 0; i < 1000 && client_pair->state() == fabric::QueuePair::State::connecting; ++i) {
      turn();
      if (const auto request = host.next_request()) {
        options.sends = &host_done;
        options.domain = kDomain;
        host_pair = *host.accept(*request, options, {});
      }
    }
    ASSERT_EQ(client_pair->state(), fabric::QueuePair::State::connected);
    wire::MapHeader header;
    std::memcpy(&header, store.region.at(map->header_offset), sizeof header);
    const auto view =
        *tree::MapView::read(header, map->header_offset, store.region.bytes(), nullptr);
    place::OneSidedReader::Options how;
    how.lanes = 4;
    how.now_ns = [this] { return network.now_ns(); };
    reader = std::make_unique<place::OneSidedReader>(client, *client_pair, client_done,
                                                     own.remote(), view, how);
  }
};

const MapOptions kOptions{.node_bytes = 4096, .log_bytes = 512};

TEST(InNetworkSim, AGetTakesOneTripWhereItTookSeveral) {
  SwitchWorld world(base::seed_from_environment(5), kOptions, 20'000);
  const std::uint32_t some[] = {0, 1, 17, 4999, 10'000, 19'999};
  for (const std::uint32_t i : some) world.trips_of(SwitchWorld::key(i));  // page table learned
  for (const std::uint32_t i : some) EXPECT_GE(world.trips_of(SwitchWorld::key(i)), 5u);
  world.install({.ranges = 4000});
  world.use_switch();
  const std::uint64_t redirected = world.through.counters().redirected;
  for (const std::uint32_t i : some) EXPECT_EQ(world.trips_of(SwitchWorld::key(i)), 1u);
  EXPECT_EQ(world.trips_of(SwitchWorld::key(20'001)), 1u);  // is not there
  EXPECT_EQ(world.through.counters().redirected - redirected, std::size(some) + 1);
  EXPECT_EQ(world.reader->restarts(), 0u);
}

// What a READ meets that no table has is answered by the node.
TEST(InNetworkSim, WithoutTablesTheNodeAnswersByItself) {
  SwitchWorld world(base::seed_from_environment(6), kOptions, 5000);
  world.use_switch();
  for (const std::uint32_t i : {0u, 77u, 4999u}) {
    EXPECT_EQ(world.trips_of(SwitchWorld::key(i)), 1u);
  }
  EXPECT_EQ(world.through.counters().redirected, 0u);
}

// Of tables that end above the leaves the rest of the way is walked.
TEST(InNetworkSim, SmallTablesSaveFewerTrips) {
  SwitchWorld world(base::seed_from_environment(7), kOptions, 20'000);
  const auto name = SwitchWorld::key(12'345);
  world.trips_of(name);
  const std::uint64_t alone = world.trips_of(name);
  world.install({.ranges = 1, .sets = 0});
  world.use_switch();
  const std::uint64_t with = world.trips_of(name);
  EXPECT_GT(with, 1u);
  EXPECT_LT(with, alone);
}

TEST(InNetworkSim, OfANodeLargerThanAPacketTheRestIsReadToo) {
  SwitchWorld world(base::seed_from_environment(8), {.node_bytes = 8192, .log_bytes = 512}, 5000);
  world.install({.ranges = 4000});
  world.use_switch();
  // Its beginning; then, in one doorbell, chunk, log, fences, and what confirms them.
  for (std::uint32_t i = 0; i < 5000; i += 333) {
    EXPECT_EQ(world.trips_of(SwitchWorld::key(i)), 2u);
  }
  EXPECT_EQ(world.trips_of(SwitchWorld::key(2500) + "x"), 2u) << "it is not there";
}

TEST(InNetworkSim, AValueOutOfLineIsReadByItself) {
  SwitchWorld world(base::seed_from_environment(9), kOptions, 1000);
  world.put(SwitchWorld::key(500), std::string(10'000, 'v'));
  world.install({.ranges = 4000});
  world.use_switch();
  // The leaf; then, in one doorbell, the value and what confirms it.
  EXPECT_EQ(world.trips_of(SwitchWorld::key(500)), 2u);
}

/// A scan in flight, and what it has handed over.
struct Scan final : Handler {
  Request request;
  std::vector<std::string> keys;
  bool over = false;
  bool items(std::uint64_t, std::span<const Item> some) override {
    for (const Item& item : some) keys.emplace_back(item.key);
    return true;
  }
  void done(const Completion& completion) override { over = completion.ok; }
};

// A scan begins at the leaf that was sent, and goes on from leaf to leaf by itself.
TEST(InNetworkSim, AScanBeginsThroughTheSwitch) {
  SwitchWorld world(base::seed_from_environment(11), kOptions, 5000);
  world.install({.ranges = 4000});
  world.use_switch();
  for (const std::uint32_t limit : {1u, 20u, 700u}) {
    Scan scan;
    const std::string low = SwitchWorld::key(1234);
    scan.request.op = Op::scan;
    scan.request.key = low;
    scan.request.limit = limit;
    const std::uint64_t redirected = world.through.counters().redirected;
    world.reader->submit(tree::WalkRequest{&scan.request, &scan, nullptr, {}, {}});
    for (int i = 0; i < 100'000 && !scan.over; ++i) world.turn();
    ASSERT_EQ(scan.keys.size(), limit);
    for (std::uint32_t i = 0; i < limit; ++i) {
      ASSERT_EQ(scan.keys[i], SwitchWorld::key(1234 + i));
    }
    EXPECT_EQ(world.through.counters().redirected, redirected + 1);
  }
}

// A session whose key is gone has lost the shared ones, too.
TEST(InNetworkSim, AFencedSessionGetsNoAnswers) {
  SwitchWorld world(base::seed_from_environment(10), kOptions, 1000);
  world.install({.ranges = 4000});
  world.use_switch();
  world.trips_of(SwitchWorld::key(1));
  world.ask(SwitchWorld::key(2));
  world.own.revoke();
  for (int i = 0; i < 1000 && !world.gets.back()->got.done; ++i) world.turn();
  EXPECT_EQ(world.client_pair->state(), fabric::QueuePair::State::error);
  ASSERT_TRUE(world.gets.back()->got.done || world.reader->pending() == 1);
  EXPECT_FALSE(world.gets.back()->got.found);
}

// A READ that was changed on its way is no gap in its pair, nor is the next one. With
// ESPALIER_SEEDS=1000 it is a million gets.
TEST(InNetworkSim, TablesThatChangeAreNeverAGapInAPair) {
  constexpr std::uint64_t kGetsOfASeed = 1000;
  const std::uint64_t seed = base::seed_from_environment(12);
  fabric::Seeds seeds(20);
  SwitchWorld world(seed, kOptions, 5000);
  base::Random random(seed);
  world.install({.ranges = 4000});
  world.use_switch();
  const dataplane::IndexTables good = world.tables;
  bool changing = false;
  world.on_packet = [&] {
    if (std::exchange(changing, true)) return;
    switch (random.below(600)) {
      case 0: world.clear(); break;
      case 1: world.install(good); break;
      case 2: world.install(world.lying(random)); break;
      default: break;
    }
    changing = false;
  };
  for (std::uint64_t i = 0; i < seeds.count(); ++i) {
    const std::uint64_t until = world.answers + kGetsOfASeed;
    while (world.answers + world.gets.size() < until || !world.gets.empty()) {
      if (world.gets.size() < 4 && world.answers + world.gets.size() < until) {
        world.ask(SwitchWorld::key(static_cast<std::uint32_t>(random.below(5010))));
      }
      world.turn();
      ASSERT_EQ(world.validate(), "");
      ASSERT_EQ(world.client_pair->state(), fabric::QueuePair::State::connected);
    }
    seeds.done();
  }
  EXPECT_EQ(world.errors, 0u);
  EXPECT_EQ(world.client.counters().sequence_naks, 0u);
  EXPECT_EQ(world.client.counters().go_back_n_events, 0u);
  EXPECT_EQ(world.host.counters().gaps, 0u);
  EXPECT_EQ(world.client.counters().malformed + world.host.counters().malformed, 0u);
  EXPECT_GT(world.through.counters().redirected, 0u);
  seeds.report("gets", world.answers);
  seeds.report("READs redirected", world.through.counters().redirected);
}

/// How often the rare was reached.
struct WeatherCounts {
  std::uint64_t redirected = 0;
  std::uint64_t again = 0;  // READs that were executed more than once
  std::uint64_t lost = 0;   // packets, as the next ones
  std::uint64_t duplicated = 0;
  std::uint64_t overtaken = 0;
};

// Of odd seeds a fifth of all packets is lost.
std::string run_bad_weather(std::uint64_t seed, WeatherCounts& counts) {
  constexpr std::uint32_t kKeys = 800;
  SwitchWorld world(seed, {.node_bytes = 1024, .log_bytes = 256}, kKeys, 20'000);
  base::Random random(seed + 100);
  world.install();
  world.use_switch(1024);
  world.network.faults.loss = seed % 2 != 0 ? 0.2 : 0.05;
  world.network.faults.duplicate = 0.1;
  world.network.faults.damage = 0.02;
  bool changing = false;
  // Between each transmission and the next one tables may be others.
  world.on_packet = [&] {
    if (changing || !random.chance(1.0 / 6)) return;
    changing = true;
    switch (random.below(3)) {
      case 0: world.clear(); break;
      case 1: world.install(); break;
      default: world.install(world.lying(random)); break;
    }
    changing = false;
  };
  std::string wrong;
  std::uint32_t asked = 0;
  for (int i = 0; i < 200'000 && wrong.empty() && world.answers < 300; ++i) {
    if (asked < 300 && world.gets.size() < 4) {
      world.ask(SwitchWorld::key(static_cast<std::uint32_t>(random.below(kKeys + 20))));
      ++asked;
    }
    if (random.chance(1.0 / 4)) {
      world.put(SwitchWorld::key(static_cast<std::uint32_t>(random.below(kKeys))),
                "new " + std::to_string(i) + std::string(random.below(60), 'x'));
      world.store.reclaimer.collect(world.context.cache);
    }
    world.turn();
    wrong = world.validate();
    if (world.client_pair->state() != fabric::QueuePair::State::connected) wrong = "the pair ended";
  }
  if (wrong.empty() && world.answers < 300) wrong = "gets were not answered";
  if (wrong.empty() && world.errors > 10) wrong = std::to_string(world.errors) + " were refused";
  counts.redirected += world.through.counters().redirected;
  counts.again += world.host.counters().reads_again;
  counts.lost += world.network.counters().lost;
  counts.duplicated += world.network.counters().duplicated;
  counts.overtaken += world.network.counters().overtaken;
  return wrong;
}

TEST(InNetworkSim, AnswersAreRightInBadWeatherWithTablesThatChangeAndLie) {
  const std::uint64_t first = base::seed_from_environment(1);
  fabric::Seeds seeds(6);
  WeatherCounts counts;
  for (std::uint64_t i = 0; i < seeds.count(); ++i) {
    SCOPED_TRACE(first + i);
    ASSERT_EQ(run_bad_weather(first + i, counts), "");
    seeds.done();
  }
  EXPECT_GT(counts.redirected, 0u);
  EXPECT_GT(counts.again, 0u);
  EXPECT_GT(counts.lost, 0u);
  EXPECT_GT(counts.duplicated, 0u);
  EXPECT_GT(counts.overtaken, 0u);
  seeds.report("READs redirected", counts.redirected);
  seeds.report("READs again", counts.again);
  seeds.report("packets lost", counts.lost);
  seeds.report("packets duplicated", counts.duplicated);
  seeds.report("packets overtaken", counts.overtaken);
}

}  // namespace
}  // namespace espalier::test
