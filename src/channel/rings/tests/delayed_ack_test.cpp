// SPDX-License-Identifier: Apache-2.0
// Delayed ACKs: packets per request. The node piggybacks the ACK of a request on its answer, and a
// client whose next request follows immediately piggybacks the ACK of the answer on that. A node
// and a client of RoCEv2, in one thread and simulated time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "channel/rings/fabric_connection.hpp"
#include "channel/rings/thread_rings.hpp"
#include "engine/fabric_clients.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "fabric/roce/endpoint.hpp"
#include "fabric/roce/packet_network.hpp"

namespace espalier::client {
namespace {

using fabric::roce::IpAddress;
using fabric::roce::PacketNetwork;
using fabric::roce::PortAddress;

constexpr std::uint64_t kUs = 1000;
constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kTurnNs = 100;  // of the node; it answers in a few of them
constexpr std::uint64_t kLongNs = 1'000 * kMs;

class HeldAcknowledgement : public testing::Test {
 protected:
  HeldAcknowledgement() {
    network_.tap = [this](const PortAddress& from, const PortAddress&, std::span<const std::byte>) {
      ++(from == kNode ? from_node_ : from_client_);
    };
    auto listens = endpoint(kNode, 1);
    EXPECT_TRUE(listens->listen("1"));
    offload::FabricClientsOptions options;
    options.now_ns = [this] { return network_.now_ns(); };
    clients_ = std::make_unique<offload::FabricClients>(std::move(listens), serving_.services(),
                                                        serving_.scheduler(), serving_.doorbells(),
                                                        std::move(options));
    serving_.client_table().on_ended = [this](offload::Connection& connection) {
      serving_.doorbells().close(connection.doorbell);
    };
  }
  ~HeldAcknowledgement() override {
    rings_.reset();
    connection_.reset();
    clients_.reset();
    while (!serving_.scheduler().idle()) serving_.scheduler().turn();
    serving_.scheduler().turn();
  }

  void connect(bool has_keepalive) {
    FabricConnectionOptions options;
    options.has_keepalive = has_keepalive;
    // Waiting clients read the clock; the node runs then, on this only thread.
    options.now_ns = [this] {
      turn();
      return network_.now_ns();
    };
    auto opened = FabricConnection::open({endpoint(kClient, 2), "10.0.0.1/1"}, options);
    ASSERT_TRUE(opened) << message(opened.error());
    connection_ = std::move(*opened);
    auto rings = ThreadRings::open(connection_);
    ASSERT_TRUE(rings) << message(rings.error());
    rings_ = std::move(*rings);
  }

  /// Sends one request, waits for the answer, and enters idle.
  void ask() {
    wire::CallMessage request;
    request.offload = wire::OffloadId::noop;
    ASSERT_TRUE(rings_->send(request, 7));
    rings_->ring();
    Incoming response;
    while (!rings_->receive(response)) {
      turn();
      network_.advance(kTurnNs);
      ASSERT_LT(network_.now_ns(), kLongNs);
    }
    EXPECT_EQ(response.header.tag, 7u);
    rings_->enter_idle();
  }

  /// The client does nothing for so long.
  void rest(std::uint64_t ns) {
    for (const std::uint64_t until = network_.now_ns() + ns; network_.now_ns() < until;) {
      turn();
      network_.advance(std::min(kTurnNs, until - network_.now_ns()));
    }
  }

  /// Departures of packets for so many requests, with a rest after each.
  std::uint64_t departures_of(int requests, std::uint64_t rest_ns) {
    const std::uint64_t before = network_.counters().departures;
    for (int i = 0; i < requests; ++i) {
      ask();
      rest(rest_ns);
    }
    return network_.counters().departures - before;
  }

  static constexpr PortAddress kNode{IpAddress::v4(10, 0, 0, 1), 4791};
  static constexpr PortAddress kClient{IpAddress::v4(10, 0, 0, 2), 4791};

  PacketNetwork network_{1};
  int from_node_ = 0;  // packets
  int from_client_ = 0;
  std::unique_ptr<offload::FabricClients> clients_;
  std::shared_ptr<FabricConnection> connection_;

 private:
  std::unique_ptr<fabric::Endpoint> endpoint(const PortAddress& at, std::uint64_t seed) {
    return std::make_unique<fabric::roce::RoceEndpoint>(
        network_.open(at), *fabric::RegionTable::create(seed), fabric::NumberSource::of_seed(seed));
  }
  void turn() {
    clients_->turn();
    serving_.scheduler().turn();
    clients_->turn();
  }

  offload::SchedulerFixture serving_;
  std::unique_ptr<ThreadRings> rings_;
};

TEST_F(HeldAcknowledgement, LeavesWithTheNextRequestThatFollowsAtOnce) {
  connect(true);
  departures_of(3, 0);  // the client must detect consecutive requests
  EXPECT_EQ(departures_of(100, 0), 200u);
  EXPECT_EQ(departures_of(100, 5 * kUs), 200u);
}

TEST_F(HeldAcknowledgement, LeavesAtOnceWhereTheNextRequestTakesItsTime) {
  connect(true);
  departures_of(3, 0);
  departures_of(3, 15 * kUs);  // and that they are not consecutive any more
  EXPECT_EQ(departures_of(100, 15 * kUs), 300u);
}

TEST_F(HeldAcknowledgement, LeavesAtOnceWhereNobodyWouldAnswerForTheClient) {
  connect(false);
  departures_of(3, 0);
  EXPECT_EQ(departures_of(100, 0), 300u);
}

// The expected next request does not come. The node probes with exponential backoff, and one answer
// of the keepalive thread ends that.
TEST_F(HeldAcknowledgement, IsGivenByTheKeepaliveThreadIfNoRequestFollows) {
  connect(true);
  departures_of(10, 0);
  from_node_ = from_client_ = 0;
  connection_->keep();  // it was used until now: does nothing yet
  rest(100 * kMs);
  EXPECT_EQ(from_client_, 0);
  EXPECT_GE(from_node_, 3);
  EXPECT_LE(from_node_, 20);
  connection_->keep();
  rest(kMs);
  EXPECT_GE(from_client_, 1);
  from_node_ = from_client_ = 0;
  connection_->keep();
  rest(100 * kMs);
  EXPECT_EQ(from_node_, 0);
  EXPECT_EQ(from_client_, 0);
  EXPECT_EQ(clients_->counts().lost, 0u);
}

// Without a keepalive thread the node gives up the pair after its timeout, as if the client were
// gone. A client that comes back resumes.
TEST_F(HeldAcknowledgement, EndsThePairIfNobodyGivesIt) {
  connect(true);
  departures_of(10, 0);
  while (clients_->counts().lost == 0) {
    rest(10 * kMs);
    ASSERT_LT(network_.now_ns(), 100 * kLongNs);
  }
  connection_->make_progress();
  ask();
  EXPECT_EQ(connection_->resumed(), 1u);
}

}  // namespace
}  // namespace espalier::client
