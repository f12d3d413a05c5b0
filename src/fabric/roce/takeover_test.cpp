// SPDX-License-Identifier: Apache-2.0
// Session takeover: attackers are other processes of a session's machines, and machines that can
// spoof its peer's address without receiving the answers. They achieve nothing, and no answer
// reveals anything to them.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <set>

#include "fabric/roce/icrc.hpp"
#include "fabric/roce/testing/hand_peer.hpp"
#include "fabric/roce/testing/takeover_checks.hpp"
#include "fabric/roce/udp_address.hpp"
#include "fabric/roce/udp_port.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::roce::takeover {
namespace {

using enum PacketOpcode;

constexpr std::uint64_t kFew = 50'000;
constexpr std::uint64_t kMany = 2'500'000;
const IpAddress kLoopback = IpAddress::v4(127, 0, 0, 1);
const IpAddress kNetwork = IpAddress::v4(10, 0, 0, 1);

std::uint64_t takeover_seed() { return base::seed_from_environment(94); }

void expect_not_taken_over(std::uint64_t packets) {
  // Nodes listen at 4791, where a network card might be, and at others.
  for (const std::uint16_t node_port : {wire::roce::kUdpPort, std::uint16_t{20000}}) {
    for (const IpAddress& ip : {kLoopback, kNetwork}) {
      SCOPED_TRACE(to_text({ip, node_port}));
      EXPECT_EQ(known_but_for_the_port(takeover_seed(), ip, node_port, packets / 2), "");
    }
  }
  EXPECT_EQ(guessed(takeover_seed(), packets), "");
  EXPECT_EQ(psns_searched(takeover_seed(), packets), "");
}

TEST(RoceTakeover, NothingIsAcceptedFromOthers) { expect_not_taken_over(kFew); }
TEST(RoceTakeoverSlow, NothingIsAcceptedFromOthers) { expect_not_taken_over(kMany); }

TEST(RoceTakeover, WhoAsksBelievesWhomItHasAsked) {
  for (const std::uint16_t node_port : {wire::roce::kUdpPort, std::uint16_t{20000}}) {
    for (const IpAddress& ip : {kLoopback, kNetwork}) {
      EXPECT_EQ(known_while_it_is_asked_for(takeover_seed(), ip, node_port), "");
    }
  }
}

TEST(PeerAddress, OfThisSoftwareIsOnePortAndOfACardAnyAbove) {
  const PeerAddress ours = peer_at({kNetwork, wire::roce::kUdpPort});
  EXPECT_TRUE(ours.sends_from({kNetwork, wire::roce::kUdpPort}));
  EXPECT_FALSE(ours.sends_from({kNetwork, wire::roce::kUdpPort + 1}));
  EXPECT_FALSE(ours.sends_from({kNetwork, kFlowPorts}));
  EXPECT_FALSE(ours.sends_from({IpAddress::v4(10, 0, 0, 2), wire::roce::kUdpPort}));

  const PeerAddress last = peer_at({kNetwork, kFlowPorts - 1});
  EXPECT_FALSE(last.is_card);
  EXPECT_EQ(last.udp_port, kFlowPorts - 1);

  const PeerAddress card = peer_at({kNetwork, kFlowPorts});
  EXPECT_TRUE(card.is_card);
  EXPECT_EQ(card.udp_port, wire::roce::kUdpPort);
  EXPECT_TRUE(card.sends_from({kNetwork, 0xFFFF}));
  EXPECT_FALSE(card.sends_from({kNetwork, wire::roce::kUdpPort}));
  EXPECT_FALSE(card.sends_from({IpAddress::v4(10, 0, 0, 2), kFlowPorts}));

  // No card has an address of loopback.
  const PeerAddress process = peer_at({kLoopback, 0xFFFF});
  EXPECT_FALSE(process.is_card);
  EXPECT_EQ(process.udp_port, 0xFFFF);
  EXPECT_FALSE(process.sends_from({kLoopback, 0xFFFE}));
}

/// A peer by hand, and what is said to requests of its around the one that is expected.
class RoceWindow : public ::testing::TestWithParam<bool> {
 protected:
  RoceWindow() {
    // A card asks from a port of its own, and is heard at 4791.
    if (GetParam()) peer.own.udp_port = kFlowPorts + 5;
    pair = scene.from(peer);
  }
  [[nodiscard]] std::uint32_t window() const {
    return GetParam() ? Responder::kCardWindow : Requester::kWindowMax;
  }
  std::vector<Heard> send(std::uint32_t ahead) {
    peer.send(request(write_only, psn_plus(next, ahead),
                      {scene.region.remote().at(0), scene.region.remote().key, 0}));
    scene.turn(3);
    return peer.hear();
  }

  HandScene scene{base::seed_from_environment(95)};
  HandPeer peer{scene.network, HandScene::address(1), HandScene::address()};
  std::unique_ptr<QueuePair> pair;
  std::uint32_t next = peer.psn;
};

TEST_P(RoceWindow, DuplicatesAndGapsAreAnsweredAsFarAsThePeerCanHaveThem) {
  ASSERT_TRUE(pair);
  for (int i = 0; i < 3; ++i, ++next) ASSERT_EQ(send(0).size(), 1u);
  const auto heard_of_gap = send(window() - 1);
  ASSERT_EQ(heard_of_gap.size(), 1u);
  EXPECT_EQ(heard_of_gap[0].headers.aeth, Aeth::nak(3, NakCode::sequence_error));
  EXPECT_EQ(heard_of_gap[0].headers.bth.psn, next);
  const auto heard_of_duplicate = send(psn_plus(0, wire::roce::kMask24 + 1 - window()));
  ASSERT_EQ(heard_of_duplicate.size(), 1u);
  EXPECT_EQ(heard_of_duplicate[0].headers.aeth.kind(), Aeth::Kind::ack);
  EXPECT_EQ(scene.endpoint.counters().out_of_window, 0u);

  EXPECT_TRUE(send(window()).empty());
  EXPECT_TRUE(send(wire::roce::kMask24 - window()).empty());
  EXPECT_TRUE(send(1u << 23).empty());
  EXPECT_EQ(scene.endpoint.counters().out_of_window, 3u);
  EXPECT_EQ(send(0).size(), 1u);
  EXPECT_EQ(pair->state(), QueuePair::State::connected);
}

TEST_P(RoceWindow, ARefusalIsSaidAgainAsFarAsThePeerCanHaveAsked) {
  ASSERT_TRUE(pair);
  peer.send(request(write_only, next, {scene.region.remote().at(0), 0, 8}),
            std::vector<std::byte>(8));
  scene.turn(3);
  ASSERT_EQ(peer.hear().size(), 1u);
  EXPECT_EQ(send(1).size(), 1u);
  EXPECT_TRUE(send(window()).empty());
  scene.turn(1000);
  peer.hear();
}

INSTANTIATE_TEST_SUITE_P(Peer, RoceWindow, ::testing::Bool(), [](const auto& which) {
  return std::string(which.param ? "Card" : "Ours");
});

// Numbers of pairs and first PSNs: 24 bits, each as often set as not, and none after another.
TEST(RoceTakeover, NumbersAreRandomInAllTheirBits) {
  Scene scene(takeover_seed(), kLoopback, 20000);
  RoceEndpoint& endpoint = scene.client.endpoint;
  std::array<std::uint32_t, 24> of_pairs{};
  std::array<std::uint32_t, 24> of_psns{};
  constexpr std::uint32_t kPairs = 4000;
  std::vector<std::unique_ptr<QueuePair>> pairs;
  std::set<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < kPairs; ++i) {
    auto options = Scene::options(scene.client);
    options.send_depth = 1;
    options.receive_depth = 1;
    pairs.push_back(*endpoint.connect("127.0.0.1:20000/7", options, {}));
    numbers.insert(pairs.back()->number());
    for (std::uint32_t bit = 0; bit < 24; ++bit) {
      of_pairs[bit] += pairs.back()->number() >> bit & 1;
      of_psns[bit] += static_cast<const Pair&>(*pairs.back()).first_psn() >> bit & 1;
    }
  }
  EXPECT_EQ(numbers.size(), kPairs);
  for (std::uint32_t bit = 0; bit < 24; ++bit) {
    EXPECT_NEAR(of_pairs[bit], kPairs / 2, 250) << bit;  // eight times the standard deviation
    EXPECT_NEAR(of_psns[bit], kPairs / 2, 250) << bit;
  }
}

/// Two endpoints over sockets of the loopback interface, and sockets of other processes.
class UdpTakeover : public ::testing::Test {
 protected:
  struct Side {
    explicit Side(std::uint64_t seed)
        : endpoint(*UdpPort::open({{kLoopback, 0}, true}), *RegionTable::create(seed),
                   NumberSource::of_seed(seed)),
          queue(endpoint, 64) {}
    [[nodiscard]] PortAddress address() { return endpoint.port().address(); }
    [[nodiscard]] const UdpCounters& udp() {
      return dynamic_cast<UdpPort&>(endpoint.port()).counters();
    }
    RoceEndpoint endpoint;
    CompletionQueue queue;
    std::unique_ptr<QueuePair> pair;
  };
  UdpTakeover() {
    EXPECT_TRUE(node.endpoint.listen("7"));
    QueuePairOptions options;
    options.sends = &client.queue;
    client.pair = *client.endpoint.connect(to_text(node.address()) + "/7", options, {});
    options.sends = &node.queue;
    while (client.pair->state() == QueuePair::State::connecting) {
      client.endpoint.progress();
      node.endpoint.progress();
      if (const auto request = node.endpoint.next_request()) {
        node.pair = *node.endpoint.accept(*request, options, {});
      }
    }
  }
  static memory::Descriptor socket_at(PortAddress& from) {
    memory::Descriptor made(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const int whole = IP_PMTUDISC_DO;
    ::setsockopt(made.number(), IPPROTO_IP, IP_MTU_DISCOVER, &whole, sizeof whole);
    for (;; ++from.udp_port) {
      const SocketAddress name(from);
      if (::bind(made.number(), name.get(), name.bytes) == 0) return made;
    }
  }
  /// Right in all but where it comes from.
  void forge(const memory::Descriptor& socket, const PortAddress& from, Side& at, const Pair& peer,
             PacketOpcode opcode) {
    Headers headers;
    headers.bth.opcode = opcode;
    headers.bth.destination = at.pair->number();
    headers.bth.psn = peer.first_psn();
    headers.bth.ask_acknowledge = true;
    std::vector<std::byte> ib(packet_bytes(opcode, 0));
    write_packet(ib.data(), headers, {});
    Icrc({from.ip, at.address().ip, from.udp_port, at.address().udp_port, true}).seal(ib);
    const SocketAddress to(at.address());
    ASSERT_EQ(::sendto(socket.number(), ib.data(), ib.size(), 0, to.get(), to.bytes),
              static_cast<ssize_t>(ib.size()));
  }

  Side node{takeover_seed()};
  Side client{takeover_seed() + 1};
};

TEST_F(UdpTakeover, APortHandsOverWhereAPacketComesFromAndNoOtherIsThePeer) {
  ASSERT_TRUE(node.pair);
  for (const std::uint16_t first : {std::uint16_t{30000}, kFlowPorts}) {
    PortAddress from{kLoopback, first};
    const memory::Descriptor socket = socket_at(from);
    for (Side* at : {&node, &client}) {
      Side& peer = at == &node ? client : node;
      // Once the node has heard that the client is ready, nothing else is under way but this said
      // again, for the client cannot know.
      while (node.endpoint.unproven() != 0) {
        client.endpoint.progress();
        node.endpoint.progress();
      }
      client.endpoint.progress();
      const EndpointCounters before = at->endpoint.counters();
      const std::uint64_t sent = at->udp().sent;
      constexpr std::uint64_t kForged = 40;
      for (std::uint64_t i = 0; i < kForged; ++i) {
        forge(socket, from, *at, static_cast<const Pair&>(*peer.pair),
              i % 2 == 0 ? send_only : write_only);
      }
      const EndpointCounters& after = at->endpoint.counters();
      const auto heard = [&] {
        at->endpoint.progress();
        return after.foreign >= before.foreign + kForged;
      };
      for (std::uint64_t waits = 0; !heard() && waits < 4 * kForged; ++waits) {
        at->endpoint.wait(1'000'000'000);
      }
      EXPECT_EQ(after.foreign, before.foreign + kForged);
      EXPECT_EQ(at->udp().sent - sent, after.readies_again - before.readies_again);
      EXPECT_EQ(at->pair->state(), QueuePair::State::connected);
    }
  }
}

}  // namespace
}  // namespace espalier::fabric::roce::takeover
