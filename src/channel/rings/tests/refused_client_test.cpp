// SPDX-License-Identifier: Apache-2.0
// Clients that a node over RoCEv2 refuses because it has too many. Each gets the refusal, retries
// until its timeout, and reports the node's reason. And a client at a spoofed address. A node and
// its clients in one thread and simulated time.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "channel/rings/fabric_connection.hpp"
#include "channel/rings/tests/testing/hostile_link.hpp"
#include "engine/fabric_clients.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "fabric/roce/endpoint.hpp"
#include "fabric/roce/icrc.hpp"
#include "fabric/roce/ip_service.hpp"
#include "fabric/roce/packet_network.hpp"

namespace espalier::client {
namespace {

using fabric::roce::IpAddress;
using fabric::roce::PortAddress;

constexpr std::uint64_t kRefusedMs = 1'000'000;

class RefusedClient : public testing::Test {
 protected:
  RefusedClient() {
    auto listens = endpoint(1);
    EXPECT_TRUE(listens->listen("1"));
    offload::FabricClientsOptions options;
    options.now_ns = [this] { return network_.now_ns(); };
    serving_.services().connections.set({.connections_max = 0});
    clients_ = std::make_unique<offload::FabricClients>(std::move(listens), serving_.services(),
                                                        serving_.scheduler(), serving_.doorbells(),
                                                        std::move(options));
    serving_.client_table().on_ended = [this](offload::Connection& connection) {
      serving_.doorbells().close(connection.doorbell);
    };
  }
  void make_room() { serving_.services().connections.set({}); }
  ~RefusedClient() override {
    clients_.reset();
    while (!serving_.scheduler().idle()) serving_.scheduler().turn();
    serving_.scheduler().turn();
  }

  Result<std::shared_ptr<FabricConnection>> open() {
    FabricConnectionOptions options;
    options.timeout_ns = 3'000 * kRefusedMs;
    options.now_ns = [this] {
      turn();
      return network_.now_ns();
    };
    return FabricConnection::open({endpoint(2), "10.0.0.1/1"}, options);
  }
  std::unique_ptr<fabric::Endpoint> endpoint(std::uint8_t last) {
    return std::make_unique<fabric::roce::RoceEndpoint>(
        network_.open({IpAddress::v4(10, 0, 0, last), 4791}), *fabric::RegionTable::create(last),
        fabric::NumberSource::of_seed(last));
  }
  void turn() {
    if (room_at_ns_ != 0 && network_.now_ns() >= room_at_ns_) make_room();
    clients_->turn();
    serving_.scheduler().turn();
    clients_->turn();
  }

  fabric::roce::PacketNetwork network_{1};
  std::uint64_t room_at_ns_ = 0;  // when there is room; 0: never
  offload::SchedulerFixture serving_;
  std::unique_ptr<offload::FabricClients> clients_;
};

TEST_F(RefusedClient, IsToldWhyHoweverManyAre) {
  const auto from = endpoint(3);
  std::vector<std::unique_ptr<HostileLink>> links;  // the first ones receive for long
  for (int i = 0; i < 1500; ++i) {
    if (i >= 100) links.pop_back();
    links.push_back(std::make_unique<HostileLink>(*from, 1'000'000, HostileLink::Room{1, 64}));
    HostileLink& link = *links.back();
    link.dial("10.0.0.1/1", link_hello(wire::LinkWay::send, {64, 64, 1}));
    while (!link.ended()) {
      network_.advance(10'000);
      turn();
      from->progress();
    }
    ASSERT_NE(link.welcome(), nullptr) << i;
    EXPECT_EQ(static_cast<Code>(link.welcome()->code), Code::too_many_participants);
  }
  EXPECT_EQ(clients_->counts().refused, 1500u);
}

// A valid request with a spoofed source address: the session that it makes is never confirmed, and
// the spoofed address gets three messages of the request's own length.
TEST_F(RefusedClient, ThatIsNotThereGetsThreeMessages) {
  make_room();
  const PortAddress from{IpAddress::v4(10, 0, 0, 9), 4791};
  const PortAddress to{IpAddress::v4(10, 0, 0, 1), 4791};
  std::size_t bytes = 0;
  network_.tap = [&](const PortAddress&, const PortAddress& where, auto ib) {
    if (where == from) bytes += ib.size();
  };
  fabric::roce::RequestMessage asked;
  asked.ids.local = 7;
  asked.service_id = fabric::roce::service_id(1);
  asked.local_pair = 8;
  asked.responder_resources = 16;
  asked.mtu = fabric::roce::mtu_code(1024);
  fabric::roce::set_ip_service(asked, {from.udp_port, from.ip, to.ip});
  const wire::LinkHello hello = link_hello(wire::LinkWay::send, {64, 64, 1});
  fabric::roce::set_request_data(asked, std::as_bytes(std::span(&hello, 1)));
  std::vector<std::byte> ib(fabric::roce::kMessagePacketBytes);
  fabric::roce::write_message_packet(ib.data(), {1, asked}, 0);
  fabric::roce::Icrc({from.ip, to.ip, from.udp_port, to.udp_port, true}).seal(ib);
  network_.inject(from, to, ib);
  for (int i = 0; i < 3'000; ++i) {
    network_.advance(10 * kRefusedMs);
    for (int turns = 0; turns < 40; ++turns) turn();  // the clock is read seldom
  }
  EXPECT_GE(bytes, ib.size());
  EXPECT_LE(bytes, 3 * ib.size());
  EXPECT_EQ(clients_->counts().sessions, 0u);
}

TEST_F(RefusedClient, ComesInWhenThereIsRoom) {
  room_at_ns_ = network_.now_ns() + 2'000 * kRefusedMs;
  const auto opened = open();
  ASSERT_TRUE(opened) << message(opened.error());
  EXPECT_GE(network_.now_ns(), room_at_ns_);
  EXPECT_LT(network_.now_ns(), room_at_ns_ + 200 * kRefusedMs);
}

// A node must give the rings of the hello, so the client retries with smaller ones.
TEST_F(RefusedClient, ComesInWithSmallerRingsWhereMemoryIsShort) {
  const wire::ConnectionLayout smaller{128, 256, wire::kResponseRingsMax};
  // One address has half of it.
  serving_.services().connections.set({.ring_bytes_max = 2 * smaller.bytes() + (64 << 10)});
  const auto opened = open();
  ASSERT_TRUE(opened) << message(opened.error());
  EXPECT_EQ(clients_->counts().sessions, 1u);
  EXPECT_EQ(clients_->counts().refused, 2u);
  EXPECT_EQ(serving_.services().connections.numbers().ring_bytes, smaller.bytes());
}

TEST_F(RefusedClient, SaysThatThereIsNoMemoryForTheSmallestRingsEither) {
  serving_.services().connections.set({.ring_bytes_max = 128 << 10});
  const auto opened = open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::out_of_memory);
  EXPECT_EQ(clients_->counts().sessions, 0u);
}

TEST_F(RefusedClient, SaysTheNodesReasonWhenItsTimeIsUp) {
  const std::uint64_t begun = network_.now_ns();
  const auto opened = open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::too_many_participants);
  EXPECT_GE(network_.now_ns() - begun, 2'800 * kRefusedMs);
  EXPECT_LE(network_.now_ns() - begun, 3'000 * kRefusedMs);
}

}  // namespace
}  // namespace espalier::client
