// SPDX-License-Identifier: Apache-2.0
#include "tests/support/switch_world.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "kinds/map/offload/map_reads.hpp"
#include "tests/support/lying_tables.hpp"

namespace espalier::test {
namespace {

using fabric::roce::PacketPort;
using fabric::roce::PortAddress;
using fabric::roce::PortExchange;

PortAddress address(std::uint8_t last) {
  return {fabric::roce::IpAddress::v4(10, 0, 0, last), 4791};
}

}  // namespace

SwitchWorld::SwitchWorld(std::uint64_t seed, const MapOptions& options, std::uint32_t key_count,
                         Way by, std::uint64_t delay_max_ns, Switches how_many)
    : way(by),
      network(seed),
      exchange([this] {
        return PortExchange::Middle([this](const PortAddress& from, const PortAddress& to,
                                           std::span<std::byte> ib) { pass(from, to, ib); });
      }),
      store(tree::make_store()),
      context(store, *store.epochs.join(), 0),
      map(*tree::create_map(store, "map", options)),
      user(context, map),
      host(open_port(2), *fabric::RegionTable::create(seed + 1),
           fabric::NumberSource::of_seed(seed + 2)),
      client(open_port(1), *fabric::RegionTable::create(seed + 3),
             fabric::NumberSource::of_seed(seed + 4)),
      host_done(host, 1024),
      client_done(client, 1024),
      switches(how_many),
      through(how_many == Switches::one ? dataplane::ProcessSwitch(function)
                                        : dataplane::ProcessSwitch({&function, &behind})) {
  network.faults.delay_max_ns = delay_max_ns;  // more than the least: READs have no order
  for (std::uint32_t i = 0; i < key_count; ++i) put(key(i), "value " + std::to_string(i));
  shared =
      std::make_shared<fabric::SharedMap>(*offload::MapReads::create(store, map, kPrefix, &met));
  keyed = *host.regions().offer_shared(shared, fabric::SharedKind::keyed);
  redirect =
      *host.regions().offer_shared(shared, fabric::SharedKind::redirect, store.region.bytes());
  own = *host.regions().offer({store.region.at(0), store.region.bytes()},
                              fabric::RemoteRights::read, kDomain);
  EXPECT_TRUE(host.regions().admit(*shared, own.remote().key));
  network.middle = [this](const PortAddress& from, const PortAddress& to, std::span<std::byte> ib) {
    pass(from, to, ib);
  };
  connect();
}

SwitchWorld::~SwitchWorld() {
  // Packets that pairs send when they are closed may arrive after `on_packet`'s objects are
  // destroyed.
  on_packet = nullptr;
  if (reader) {
    reader->fail();
    reader->poll();
  }
  network.middle = nullptr;
}

std::unique_ptr<PacketPort> SwitchWorld::open_port(std::uint8_t last) {
  if (way == Way::network) return network.open(address(last));
  return std::move(*exchange.open(address(last)));
}

void SwitchWorld::pass(const PortAddress& from, const PortAddress& to, std::span<std::byte> ib) {
  if (on_packet) on_packet();
  through.process(from, to, ib);
}

std::uint64_t SwitchWorld::now_ns() const {
  return way == Way::network ? network.now_ns() : base::monotonic_ns();
}

void SwitchWorld::put(const std::string& name, const std::string& value) {
  user.put(name, value);
  has(name, value);
}

void SwitchWorld::install(const dataplane::TableLimits& limits) {
  place::IndexFollower follower(keys(), kPrefix, redirect.remote().base, limits);
  place::LocalRegion region(store.region.at(0));
  auto slot = *store.epochs.join();
  slot.enter();
  ASSERT_TRUE(follower.follow(*map, region));
  slot.exit();
  install(follower.tables());
}

void SwitchWorld::install(const dataplane::IndexTables& to) {
  tables = to;
  if (switches == Switches::two) {
    const auto programs = cut(tables);
    function.install(programs[0].function());
    behind.install(programs[1].function());
    return;
  }
  dataplane::PacketFunction with;
  with.add(keys(), tables);
  function.install(with);
}

void SwitchWorld::install_in(bool first, const dataplane::IndexTables* to) {
  dataplane::InstalledFunction& into = first ? function : behind;
  into.install(to == nullptr ? dataplane::PacketFunction() : cut(*to)[first ? 0 : 1].function());
}

std::vector<dataplane::SwitchProgram> SwitchWorld::cut(const dataplane::IndexTables& to) {
  return dataplane::cut_program(keys(), to, {.hops = {{0, 1}, {to.sets.size(), 1}}}, ++generation_);
}

dataplane::IndexTables SwitchWorld::lying(base::Random& random) const {
  return lying_tables(tables, redirect.remote().base, store.region.bytes(), random);
}

void SwitchWorld::turn() {
  host.progress();
  client.progress();
  if (reader) {
    reader->poll();
    if (const auto asked = reader->lease().due(now_ns())) answer_lease(*asked);
  }
  if (way == Way::network) network.advance(5'000);
}

void SwitchWorld::answer_lease(const place::LeaseGuard::Asked& asked) {
  const std::uint64_t now = now_ns();
  if (asked.id == 0) {
    const auto granted = store.leases.grant(1, now);
    return reader->lease().granted(granted.id, granted.epoch, now, now);
  }
  const auto renewed = store.leases.renew(asked.id, asked.oldest, now);
  if (!renewed) return reader->lease().lost();
  reader->lease().renewed(*renewed, now);
}

void SwitchWorld::ask(const std::string& name) {
  Get& get = add(name);
  reader->submit(tree::WalkRequest{&get.request, &get, nullptr, {}, {}});
}

std::uint64_t SwitchWorld::trips_of(const std::string& name) {
  const std::uint64_t before = reader->traffic().round_trips;
  ask(name);
  for (int i = 0; i < 100'000 && !gets.back()->over; ++i) turn();
  EXPECT_EQ(errors, 0u);
  EXPECT_EQ(validate(), "");
  EXPECT_TRUE(gets.empty());
  return reader->traffic().round_trips - before;
}

void SwitchWorld::connect() {
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
  const auto view = *tree::MapView::read(header, map->header_offset, store.region.bytes(), nullptr);
  place::OneSidedReader::Options how;
  how.lanes = 4;
  how.now_ns = [this] { return now_ns(); };
  reader = std::make_unique<place::OneSidedReader>(client, *client_pair, client_done, own.remote(),
                                                   view, how);
}

}  // namespace espalier::test
