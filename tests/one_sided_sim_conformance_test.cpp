// SPDX-License-Identifier: Apache-2.0
// The reads of the conformance workload, by one-sided walks in a simulated fabric and on the
// embedded map that these walk: the answers must be the same. Also for clients with a node cache,
// and for clients whose READs carry keys, through a switch.
//
// One map is read both ways, so versions are compared as they are. If the fabric loses a pair or a
// walk gives up, the client asks again, as the library does.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/fat_tree.hpp"
#include "dataplane/process_switch.hpp"
#include "dataplane/way_tables.hpp"
#include "fabric/sim/testing/two_ends.hpp"
#include "index/index_follower.hpp"
#include "index/tree_crawl.hpp"
#include "kinds/map/client/embedded_map.hpp"
#include "kinds/map/offload/map_reads.hpp"
#include "kinds/map/remote/one_sided_reader.hpp"
#include "tests/support/conformance_requests.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/store.hpp"
#include "tests/support/world_host.hpp"

namespace espalier::test {
namespace {

using fabric::QueuePair;
using fabric::sim::End;

/// Collects answers; discards those of an unfinished walk.
struct Repeating final : Gather {
  void done(const Completion& completion) override {
    const Code code = completion.ok ? Code::invalid : completion.error.code;
    if (code != Code::contended && code != Code::connection_lost) return Gather::done(completion);
    said.erase(completion.tag);
    again.push_back(completion.tag);
  }
  std::vector<std::uint64_t> again;
};

/// How a client reads.
struct Reading {
  std::uint64_t cache_bytes = 0;  ///< size of its node cache
  bool by_key = false;            ///< READs carry keys, through a switch
  bool two = false;               ///< through two in a row
  bool tree = false;              ///< or through a FatTree, as the second of two nodes
};

/// A client of a map that lies in this process, at the other end of a simulated fabric.
class SimulatedClient {
 public:
  SimulatedClient(std::uint64_t seed, const fabric::sim::Faults& faults, tree::MapCore& map,
                  const Reading& reading)
      : two_(reading.two),
        tree_(reading.tree ? std::make_unique<dataplane::FatTree>() : nullptr),
        cache_(reading.cache_bytes),
        map_(map),
        world_(seed, faults),
        random_(seed + 1),
        store_(map.store),
        here_(world_.add_node("client")),
        there_(world_.add_node(kHostName)) {
    if (!there_->listen(kHostName)) throw std::runtime_error("the host cannot listen");
    region_ = *there_->regions().offer({store_.region.at(0), store_.region.bytes()},
                                       fabric::RemoteRights::read, 0);
    remote_ = region_.remote();
    wire::MapHeader header;
    std::memcpy(&header, store_.region.at(map.header_offset), sizeof header);
    view_.emplace(*tree::MapView::read(header, map.header_offset, store_.region.bytes(), nullptr));
    if (reading.by_key) read_by_key();
  }
  ~SimulatedClient() {
    close();
    world_.middle = nullptr;
  }
  /// READs that the switch has redirected.
  [[nodiscard]] std::uint64_t redirected() const { return counters().redirected; }
  /// And those of them that the first of two carried to the second.
  [[nodiscard]] std::uint64_t carried() const { return counters().carried; }

  /// Fills the switch's tables, of the tree as it is, or empties them.
  void fill_tables() {
    if (tree_) return fill_tree();
    dataplane::PacketFunction with;
    dataplane::PacketFunction behind;
    if (!random_.one_in(4)) {
      const dataplane::MapKeys keys{keyed_.remote().key, redirect_.remote().key};
      place::IndexFollower follower(keys, "", redirect_.remote().base,
                                    {.ranges = two_ ? 2u : 40u, .sets = 1, .nodes_per_set = 40});
      place::LocalRegion region(store_.region.at(0));
      ASSERT_TRUE(follower.follow(map_, region));  // no writes meanwhile
      if (two_) {
        const dataplane::WayBudget way{.hops = {{0, 1}, {1, 40}}};
        const auto parts = dataplane::cut_program(keys, follower.tables(), way, ++generation_);
        with = parts[0].function();
        behind = parts[1].function();
      } else {
        with.add(keys, follower.tables());
      }
    }
    if (!two_ || !random_.one_in(8)) behind_.install(behind);
    function_.install(with);
  }

  /// Repeats requests until each is answered.
  std::string answers(const std::vector<Request>& requests) {
    Repeating gather;
    for (const Request& request : requests) gather.again.push_back(request.tag);
    while (!gather.again.empty()) {
      if (!reader_) open();
      std::vector<Request> asked;
      for (const std::uint64_t tag : gather.again) asked.push_back(requests[tag]);
      gather.again.clear();
      reader_->submit(asked, gather);
      finish();
    }
    return gather.all();
  }

  [[nodiscard]] const fabric::sim::Counts& counts() { return world_.counts(); }

 private:
  [[nodiscard]] const dataplane::ProcessSwitch::Counters& counters() const {
    return tree_ ? tree_->through.counters() : through_.counters();
  }
  // Each switch in its turn, and now and then one of them not: it has other tables then.
  void fill_tree() {
    const dataplane::MapKeys keys[] = {{keyed_.remote().key, 1, 0},
                                       {keyed_.remote().key, redirect_.remote().key, 1}};
    place::LocalRegion region(store_.region.at(0));
    const auto crawled = place::crawl(map_, region);
    ASSERT_TRUE(crawled);
    const std::vector images(2, crawled->image("", redirect_.remote().base));
    const auto topology = tree_->budget(4, {1, 40}, {1, 40});
    std::vector<dataplane::IndexTables> tables;
    for (auto& each : dataplane::compile(images, *dataplane::limits_of(topology))) {
      tables.push_back(std::move(each.tables));
    }
    const auto programs = dataplane::cut_program(keys, tables, topology, ++generation_);
    for (std::size_t i = 0; i < programs.size(); ++i) {
      if (!random_.one_in(8)) tree_->function(i).install(programs[i].function());
    }
  }
  void read_by_tree() {
    tree_->add_node({0, 0, 0});
    tree_->add_node(kTreeNode);
    const fabric::roce::PortAddress from{dataplane::FatTree::Host{0, 0, 1}.address(), 4791};
    const fabric::roce::PortAddress to{kTreeNode.service(), 4791};
    world_.middle = [this, from, to](fabric::RegionKey& key, std::uint64_t& address) {
      tree_->through.process(from, to, key, address);
    };
  }
  void read_by_key() {
    auto map = store_.catalog.find<tree::MapCore>(map_.id);
    shared_ = std::make_shared<fabric::SharedMap>(*offload::MapReads::create(store_, map, ""));
    keyed_ = *there_->regions().offer_shared(shared_, fabric::SharedKind::keyed);
    redirect_ = *there_->regions().offer_shared(shared_, fabric::SharedKind::redirect,
                                                store_.region.bytes());
    ASSERT_TRUE(there_->regions().admit(*shared_, remote_.key));
    if (tree_) return read_by_tree();
    world_.middle = [this](fabric::RegionKey& key, std::uint64_t& address) {
      through_.process(key, address);
    };
  }
  void open() {
    for (;;) {
      ends_.emplace_back(std::make_unique<End>(*here_), std::make_unique<End>(*there_));
      auto& [mine, other] = ends_.back();
      if (fabric::sim::connect(world_, *mine, *other, kHostName)) break;
      while (const auto request = there_->next_request()) there_->reject(*request);
    }
    place::OneSidedReader::Options options;
    options.lanes = 4;
    options.terms = kWorldTerms;
    options.now_ns = [this] { return world_.now_ns(); };
    if (cache_.bytes() != 0) options.cache = &cache_;
    End& mine = *ends_.back().first;
    reader_ = std::make_unique<place::OneSidedReader>(*here_, *mine.pair, mine.sends, remote_,
                                                      *view_, options);
    if (shared_) reader_->read_by_key({keyed_.remote().key, "", view_->geometry.node_bytes});
  }
  void finish() {
    QueuePair& pair = *ends_.back().first->pair;
    while (reader_->poll() != 0) {
      if (const auto asked = reader_->lease().due(world_.now_ns())) answer(*asked);
      if (pair.state() == QueuePair::State::error) reader_->fail();
      here_->wait(random_.below(3000));
    }
    if (pair.state() == QueuePair::State::error) close();
  }
  // The host receives the request and answers it immediately.
  void answer(const place::LeaseGuard::Asked& asked) {
    const std::uint64_t now = world_.now_ns();
    if (asked.id == 0) {
      const auto granted = store_.leases.grant(1, now);
      lease_ = granted.id;
      return reader_->lease().granted(granted.id, granted.epoch, now, now);
    }
    const auto renewed = store_.leases.renew(asked.id, asked.oldest, now);
    ASSERT_TRUE(renewed);
    reader_->lease().renewed(*renewed, now);
  }
  void close() {
    if (!reader_) return;
    reader_.reset();
    if (lease_ != 0) store_.leases.end(std::exchange(lease_, 0));
    auto& [mine, other] = ends_.back();
    mine->pair.reset();
    other->pair.reset();
  }

  static constexpr dataplane::FatTree::Host kTreeNode{0, 1, 0};
  const bool two_;                                  // switches are in a row
  const std::unique_ptr<dataplane::FatTree> tree_;  // null: none
  place::NodeCache cache_;
  tree::MapCore& map_;
  fabric::sim::World world_;
  Random random_;
  tree::StoreCore& store_;
  std::unique_ptr<fabric::Endpoint> here_;
  std::unique_ptr<fabric::Endpoint> there_;
  fabric::Registration region_;
  fabric::RemoteRegion remote_;
  std::shared_ptr<fabric::SharedMap> shared_;  // null: READs carry no keys
  fabric::Registration keyed_;
  fabric::Registration redirect_;
  dataplane::InstalledFunction function_;
  dataplane::InstalledFunction behind_;
  dataplane::ProcessSwitch through_ =
      two_ ? dataplane::ProcessSwitch({&function_, &behind_}) : dataplane::ProcessSwitch(function_);
  std::uint32_t generation_ = 0;
  std::optional<tree::MapView> view_;
  std::vector<std::pair<std::unique_ptr<End>, std::unique_ptr<End>>> ends_;
  std::unique_ptr<place::OneSidedReader> reader_;
  base::LeaseId lease_ = 0;
};

void write_some(Map& map, Random& random) {
  for (std::uint64_t n = random.below(60); n != 0; --n) {
    const std::string key = conformance_key(random);
    if (random.one_in(3)) {
      static_cast<void>(map.erase(key));
    } else {
      static_cast<void>(map.put(key, conformance_value(random)));
    }
  }
}

void compare(std::uint64_t seed, const fabric::sim::Faults& faults, const MapOptions& options,
             const Reading& reading = {}) {
  SCOPED_TRACE(seed_text(seed));
  Store store = open_store();
  auto map = store.create_map("tested", options);
  ASSERT_TRUE(map);
  SimulatedClient client(seed, faults, client::EmbeddedMap::of(*map).core(), reading);
  auto pipeline = Pipeline::open(*map, 8);
  ASSERT_TRUE(pipeline);
  Random random(seed);
  std::uint64_t found = 0;
  for (std::uint64_t round = 0; round < steps_or(scaled(200)); ++round) {
    write_some(*map, random);
    if (reading.by_key) client.fill_tables();
    const auto reads = ConformanceRequests::reads(random);
    Gather expected;
    pipeline->run(reads.all(), expected);
    ASSERT_EQ(client.answers(reads.all()), expected.all()) << "round " << round;
    found += expected.said.size();
  }
  EXPECT_GT(found, 0u);
  EXPECT_EQ(client.redirected() > 0, reading.by_key);
  EXPECT_EQ(client.carried() > 0, reading.two || reading.tree);
  if (faults.loss > 0) {
    EXPECT_GT(client.counts().lost, 0u);
  }
}

TEST(OneSidedSimConformance, AnswersAreTheSame) { compare(seed_from_environment(1), {}, {}); }

TEST(OneSidedSimConformance, AnswersAreTheSameInSmallNodes) {
  compare(seed_from_environment(2), {}, {.node_bytes = 512, .log_bytes = 64});
}

TEST(OneSidedSimConformance, AnswersAreTheSameInBadWeather) {
  const std::uint64_t first = seed_from_environment(3);
  for (std::uint64_t i = 0; i < 4; ++i) {
    compare(first + i, fabric::sim::Faults::harsh(), {.node_bytes = 1024, .log_bytes = 128});
  }
}

TEST(OneSidedSimConformance, AnswersAreTheSameWhereNodesAreRemembered) {
  const std::uint64_t first = seed_from_environment(4);
  fabric::sim::Faults faults;
  for (std::uint64_t i = 0; i < 4; ++i) {
    if (i == 2) faults = fabric::sim::Faults::harsh();
    faults.reads_in_order = i % 2 == 0;
    compare(first + i, faults, {.node_bytes = 1024, .log_bytes = 128}, {.cache_bytes = 128 << 10});
  }
}

TEST(OneSidedSimConformance, AnswersAreTheSameThroughASwitch) {
  const std::uint64_t first = seed_from_environment(5);
  fabric::sim::Faults faults;
  for (std::uint64_t i = 0; i < 4; ++i) {
    if (i == 2) faults = fabric::sim::Faults::harsh();
    faults.reads_in_order = i % 2 == 0;
    compare(first + i, faults, {.node_bytes = 1024, .log_bytes = 128}, {.by_key = true});
  }
}

TEST(OneSidedSimConformance, AnswersAreTheSameThroughTwoSwitchesInARow) {
  const std::uint64_t first = seed_from_environment(6);
  fabric::sim::Faults faults;
  for (std::uint64_t i = 0; i < 4; ++i) {
    if (i == 2) faults = fabric::sim::Faults::harsh();
    faults.reads_in_order = i % 2 == 0;
    compare(first + i, faults, {.node_bytes = 512, .log_bytes = 64}, {.by_key = true, .two = true});
  }
}

TEST(OneSidedSimConformance, AnswersAreTheSameThroughAFatTree) {
  const std::uint64_t first = seed_from_environment(7);
  fabric::sim::Faults faults;
  for (std::uint64_t i = 0; i < 4; ++i) {
    if (i == 2) faults = fabric::sim::Faults::harsh();
    faults.reads_in_order = i % 2 == 0;
    compare(first + i, faults, {.node_bytes = 512, .log_bytes = 64},
            {.by_key = true, .tree = true});
  }
}

}  // namespace
}  // namespace espalier::test
