// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fat_tree_world.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "index/tree_crawl.hpp"
#include "kinds/map/offload/map_reads.hpp"
#include "tests/support/lying_tables.hpp"

namespace espalier::test {
namespace {

using dataplane::FatTree;
using fabric::roce::PortAddress;

constexpr std::uint64_t kAgreed = 0x5EED;  // of which all nodes make their keyed key

PortAddress at(const fabric::roce::IpAddress& ip) { return {ip, wire::roce::kUdpPort}; }

}  // namespace

FatTreeWorld::Node::Node(FatTreeWorld& world, std::uint16_t number, std::uint64_t seed,
                         const MapOptions& options)
    : store(tree::make_store()),
      context(store, *store.epochs.join(), 0),
      map(*tree::create_map(store, "map", options)),
      user(context, map),
      endpoint(world.network.open(at(kHosts[number].service())), *fabric::RegionTable::create(seed),
               fabric::NumberSource::of_seed(seed + 1)),
      done(endpoint, 1024) {}

FatTreeWorld::Client::Client(FatTreeWorld& world, std::size_t number, std::uint64_t seed)
    : endpoint(world.network.open(at(kClientHosts[number].address())),
               *fabric::RegionTable::create(seed), fabric::NumberSource::of_seed(seed + 1)) {}

FatTreeWorld::FatTreeWorld(std::uint64_t seed, const MapOptions& options, std::uint32_t key_count,
                           std::uint64_t delay_max_ns)
    : network(seed) {
  network.faults.delay_max_ns = delay_max_ns;
  network.middle = [this](const PortAddress& from, const PortAddress& to, std::span<std::byte> ib) {
    tree.through.process(from, to, ib);
  };
  for (std::uint16_t i = 0; i < kNodes; ++i) {
    tree.add_node(kHosts[i]);
    borders.push_back(i == 0 ? std::string() : key(key_count / kNodes * i));
    nodes.push_back(std::make_unique<Node>(*this, i, seed + 10 + 2 * i, options));
  }
  for (std::uint32_t i = 0; i < key_count; ++i) put(key(i), "value " + std::to_string(i));
  for (std::uint16_t i = 0; i < kNodes; ++i) {
    Node& node = *nodes[i];
    node.shared = std::make_shared<fabric::SharedMap>(
        *offload::MapReads::create(node.store, node.map, kPrefix, &node.met));
    fabric::RegionTable& regions = node.endpoint.regions();
    node.keyed = *regions.offer_agreed(node.shared, fabric::RegionTable::agreed_key(kAgreed));
    node.redirect =
        *regions.offer_shared(node.shared, fabric::SharedKind::redirect, node.store.region.bytes());
    keys.push_back({node.keyed.remote().key, node.redirect.remote().key, i});
  }
  for (std::size_t client = 0; client < kClients; ++client) {
    clients.push_back(std::make_unique<Client>(*this, client, seed + 50 + 2 * client));
    for (std::uint16_t node = 0; node < kNodes; ++node) connect(client, node);
  }
}

FatTreeWorld::~FatTreeWorld() {
  network.middle = nullptr;
  for (const auto& client : clients) {
    for (Link& link : client->links) {
      if (!link.reader) continue;
      link.reader->fail();
      link.reader->poll();
    }
  }
}

std::uint16_t FatTreeWorld::node_of(const std::string& name) const {
  const auto above = std::ranges::upper_bound(borders, name);
  return static_cast<std::uint16_t>(above - borders.begin() - 1);
}

void FatTreeWorld::put(const std::string& name, const std::string& value) {
  Node& node = *nodes[node_of(name)];
  node.user.put(name, value);
  node.store.reclaimer.collect(node.context.cache);
  has(name, value);
}

void FatTreeWorld::compile(const Room& room) {
  const auto topology = tree.budget(room.ranges, {1, room.nodes}, {2, room.nodes});
  std::vector<dataplane::TreeImage> images;
  for (const auto& node : nodes) {
    place::LocalRegion region(node->store.region.at(0));
    auto slot = *node->store.epochs.join();
    slot.enter();
    const auto crawled = place::crawl(*node->map, region);
    ASSERT_TRUE(crawled);
    images.push_back(crawled->image(kPrefix, node->redirect.remote().base, {}));
    slot.exit();
  }
  std::vector<dataplane::IndexTables> tables;
  for (auto& each : dataplane::compile(images, *dataplane::limits_of(topology))) {
    tables.push_back(std::move(each.tables));
  }
  programs = dataplane::cut_program(keys, tables, topology, ++generation_);
}

void FatTreeWorld::install(std::size_t number) {
  tree.function(number).install(programs[number].function());
}

void FatTreeWorld::install_lies(std::size_t number, base::Random& random) {
  dataplane::PacketFunction with;
  for (const dataplane::SwitchMap& map : programs[number].maps()) {
    const Node& node = *nodes[map.keys.node];
    with.add(
        map.keys,
        lying_tables(map.tables, node.redirect.remote().base, node.store.region.bytes(), random),
        map.part);
  }
  tree.function(number).install(with);
}

void FatTreeWorld::install_all() {
  for (std::size_t i = 0; i < FatTree::kSwitches; ++i) install(i);
}

void FatTreeWorld::turn() {
  for (const auto& node : nodes) node->endpoint.progress();
  for (const auto& client : clients) {
    client->endpoint.progress();
    for (std::uint16_t i = 0; i < kNodes; ++i) {
      place::OneSidedReader* const reader = client->links[i].reader.get();
      if (reader == nullptr) continue;
      reader->poll();
      answer_lease(*nodes[i], *reader);
    }
  }
  network.advance(5'000);
}

void FatTreeWorld::answer_lease(Node& node, place::OneSidedReader& reader) {
  const std::uint64_t now = network.now_ns();
  const auto asked = reader.lease().due(now);
  if (!asked) return;
  if (asked->id == 0) {
    const auto granted = node.store.leases.grant(1, now);
    return reader.lease().granted(granted.id, granted.epoch, now, now);
  }
  const auto renewed = node.store.leases.renew(asked->id, asked->oldest, now);
  if (!renewed) return reader.lease().lost();
  reader.lease().renewed(*renewed, now);
}

void FatTreeWorld::ask(std::size_t client, const std::string& name) {
  Get& get = add(name);
  clients[client]->links[node_of(name)].reader->submit(
      tree::WalkRequest{&get.request, &get, nullptr, {}, {}});
}

std::uint64_t FatTreeWorld::trips_of(std::size_t client, const std::string& name) {
  const auto& reader = *clients[client]->links[node_of(name)].reader;
  const std::uint64_t before = reader.traffic().round_trips;
  ask(client, name);
  for (int i = 0; i < 100'000 && !gets.back()->over; ++i) turn();
  EXPECT_EQ(validate(), "");
  EXPECT_EQ(errors, 0u);
  EXPECT_TRUE(gets.empty());
  return reader.traffic().round_trips - before;
}

bool FatTreeWorld::all_connected() const {
  return std::ranges::all_of(clients, [](const auto& client) {
    return std::ranges::all_of(client->links, [](const Link& link) {
      return link.client_pair->state() == fabric::QueuePair::State::connected;
    });
  });
}

std::uint64_t FatTreeWorld::resolved() const {
  std::uint64_t sum = 0;
  for (const auto& node : nodes) sum += node->met.resolved;
  return sum;
}

std::uint64_t FatTreeWorld::restarts() const {
  std::uint64_t sum = 0;
  for (const auto& client : clients) {
    for (const Link& link : client->links) sum += link.reader->restarts();
  }
  return sum;
}

void FatTreeWorld::connect(std::size_t number, std::uint16_t node_number) {
  Client& client = *clients[number];
  Node& node = *nodes[node_number];
  Link& link = client.links[node_number];
  const auto domain = static_cast<fabric::Domain>(number + 1);
  fabric::RegionTable& regions = node.endpoint.regions();
  link.own = *regions.offer({node.store.region.at(0), node.store.region.bytes()},
                            fabric::RemoteRights::read, domain);
  ASSERT_TRUE(regions.admit(*node.shared, link.own.remote().key));
  if (number == 0) {
    ASSERT_TRUE(node.endpoint.listen("7"));
  }
  fabric::QueuePairOptions options;
  link.done = std::make_unique<fabric::CompletionQueue>(client.endpoint, 1024);
  options.sends = link.done.get();
  const std::string to = fabric::roce::to_text(at(kHosts[node_number].service())) + "/7";
  link.client_pair = *client.endpoint.connect(to, options, {});
  const auto connecting = fabric::QueuePair::State::connecting;
  for (int i = 0; i < 1000 && link.client_pair->state() == connecting; ++i) {
    turn();
    if (const auto request = node.endpoint.next_request()) {
      options.sends = &node.done;
      options.domain = domain;
      link.host_pair = *node.endpoint.accept(*request, options, {});
    }
  }
  ASSERT_EQ(link.client_pair->state(), fabric::QueuePair::State::connected);
  wire::MapHeader header;
  std::memcpy(&header, node.store.region.at(node.map->header_offset), sizeof header);
  const auto view =
      *tree::MapView::read(header, node.map->header_offset, node.store.region.bytes(), nullptr);
  place::OneSidedReader::Options how;
  how.lanes = 4;
  how.now_ns = [this] { return network.now_ns(); };
  link.reader = std::make_unique<place::OneSidedReader>(client.endpoint, *link.client_pair,
                                                        *link.done, link.own.remote(), view, how);
  link.reader->read_by_key({node.keyed.remote().key, kPrefix, view.geometry.node_bytes});
}

}  // namespace espalier::test
