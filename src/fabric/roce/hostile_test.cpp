// SPDX-License-Identifier: Apache-2.0
// Hostile machines: whatever they send, with whatever source address, the witness's pair goes on,
// and its memory stays as it is; what they make an endpoint remember is bounded, and is forgotten.
// An attacker that spoofs the address of a pair's peer can harm that pair, and no other.
#include <gtest/gtest.h>

#include <deque>
#include <utility>

#include "fabric/roce/testing/hostile_scene.hpp"
#include "fabric/roce/testing/sample_packets.hpp"

namespace espalier::fabric::roce {
namespace {

using enum PacketOpcode;

struct Recorded {
  PortAddress from;
  PortAddress to;
  std::vector<std::byte> ib;
};

class RoceHostile : public ::testing::Test {
 protected:
  RoceHostile() : all(base::seed_from_environment(90)) {}

  /// The traffic of a pair, from asking for it on, both ways.
  std::vector<Recorded> record(Honest& honest) {
    std::vector<Recorded> recorded;
    all.scene.network.tap = [&](const PortAddress& from, const PortAddress& to, auto ib) {
      if (from != honest.address && to != honest.address) return;
      recorded.push_back({from, to, {ib.begin(), ib.end()}});
    };
    all.connect(honest);
    for (int i = 0; i < 5; ++i) all.expect_works(honest);
    all.scene.network.tap = nullptr;
    return recorded;
  }
  /// Lets all arrive, now and then with the witness at work.
  void take_turn(int i) {
    if (i % 16 == 15) all.turn();
    if (i % 1024 == 1023) all.expect_witness();
  }
  void expect_forgotten(std::size_t connections) {
    for (int i = 0; i < 1200; ++i) {
      all.scene.network.advance(10'000'000);
      all.turn();
    }
    EXPECT_LE(all.scene.endpoint.connections(), connections);
  }

  HostileScene all;
};

/// Machines that are where they say, and want nothing but a place: each brings the cookie that it
/// is sent.
class Crowd {
 public:
  explicit Crowd(HostileScene& scene) : all(scene) {
    all.scene.network.tap = [this](const PortAddress& from, const PortAddress& to, auto ib) {
      if (from != HostileScene::target()) return;
      const auto packet = parse(ib);
      const auto message = packet ? parse_message(*packet) : std::nullopt;
      const auto* const reject = message ? std::get_if<RejectMessage>(&message->body) : nullptr;
      if (reject == nullptr || cookie_of(*reject) == 0) return;
      for (Asked& each : asked) {
        if (each.from == to) each.cookie = cookie_of(*reject);
      }
    };
  }
  ~Crowd() { all.scene.network.tap = nullptr; }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  void ask(const PortAddress& from) {
    RequestMessage request = sample::request(all.random);
    request.service_id = service_id(7);
    request.transport_service = 0;
    set_cookie(request, 0);
    set_ip_service(request, {from.udp_port, from.ip, HostileScene::target().ip});
    all.forge(from, HostileScene::target(), ConnectionMessage{all.random(), request});
    asked.push_back({from, request, 0});
    if (asked.size() > 256) asked.pop_front();
  }
  void bring_cookies() {
    for (Asked& each : asked) {
      if (each.cookie == 0) continue;
      set_cookie(each.request, std::exchange(each.cookie, 0));
      all.forge(each.from, HostileScene::target(), ConnectionMessage{all.random(), each.request});
    }
  }

 private:
  struct Asked {
    PortAddress from;
    RequestMessage request;
    std::uint64_t cookie = 0;  // that it is to bring
  };
  HostileScene& all;
  std::deque<Asked> asked;
};

TEST_F(RoceHostile, RandomBytes) {
  for (int i = 0; i < 30'000; ++i) {
    std::vector<std::byte> ib(all.random.below(all.random.chance(0.9) ? 120 : 5000));
    all.random.fill(ib);
    // Half of them get as far as an opcode that exists.
    if (all.random.chance(0.5) && ib.size() > 2) {
      ib[0] = static_cast<std::byte>(all.random.chance(0.1) ? 0x64 : all.random.below(0x15));
      ib[1] &= std::byte{0xF0};
    }
    all.forge(all.random.chance(0.5) ? all.unknown_peer() : all.victim.address, all.target(), ib);
    take_turn(i);
  }
  EXPECT_GT(all.scene.endpoint.counters().malformed, 1000u);
  EXPECT_GT(all.scene.endpoint.counters().unknown_peers, 1000u);
  all.expect_witness();
}

TEST_F(RoceHostile, EachBitOfGenuinePacketsChanged) {
  const auto recorded = record(all.victim);
  int sent = 0;
  for (const Recorded& packet : recorded) {
    const std::size_t bits = 8 * std::min<std::size_t>(packet.ib.size(), 80);
    for (std::size_t bit = 0; bit < bits; bit += all.random.between(1, 8)) {
      auto ib = packet.ib;
      ib[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
      all.forge(packet.from, packet.to, ib);
      all.forge(all.unknown_peer(), packet.to, ib);
      take_turn(sent++);
    }
  }
  EXPECT_GT(sent, 5000);
  all.expect_witness();
  expect_forgotten(2);  // requests with other numbers, some in the victim's name
  all.connect(all.victim);
  all.expect_works(all.victim);
}

TEST_F(RoceHostile, ReplaysOfGenuineTrafficChangeNothing) {
  const auto recorded = record(all.victim);
  const auto memory = all.victim.memory;
  for (int i = 0; i < 20'000; ++i) {
    const Recorded& packet = recorded[all.random.below(recorded.size())];
    all.scene.network.inject(packet.from, packet.to, packet.ib);
    take_turn(i);
  }
  EXPECT_TRUE(all.victim.memory == memory);
  all.expect_works(all.victim);
  all.expect_witness();
}

TEST_F(RoceHostile, NumbersOfPairsAndPacketsGuessed) {
  const RemoteRegion& region = all.victim.region.remote();
  const std::vector<std::byte> payload(1024);
  const std::uint32_t pair = all.victim.far->number();
  for (int i = 0; i < 60'000; ++i) {
    const auto opcode = static_cast<PacketOpcode>(all.random.below(0x15));
    Headers made = sample::headers(all.random, opcode, 0);
    made.bth.partition = wire::roce::kDefaultPartition;
    // The right pair with a guessed PSN in the peer's name, but more often all is guessed.
    const bool right_pair = all.random.chance(0.2);
    if (right_pair) made.bth.destination = pair;
    if (all.random.chance(0.5)) made.reth = {region.at(0), region.key ^ 1, 1024};
    const bool carries = parts_of(opcode).has(Parts::kPayload);
    all.forge(right_pair ? all.unknown_peer() : all.victim.address, all.target(), made,
              carries ? std::span(payload) : std::span<const std::byte>());
    take_turn(i);
  }
  all.expect_works(all.victim);
  all.expect_witness();
}

TEST_F(RoceHostile, PsnsAroundTheRightOneInThePeersName) {
  const RemoteRegion& region = all.victim.region.remote();
  for (int round = 0; round < 200; ++round) {
    const auto& near = static_cast<const Pair&>(*all.victim.near);
    const std::array offsets{0u, 1u, 2u, 255u, 1u << 22, (1u << 23) - 1, 1u << 23, (1u << 24) - 1};
    for (const std::uint32_t offset : offsets) {
      const auto opcode = static_cast<PacketOpcode>(all.random.below(0x15));
      Headers made = sample::headers(all.random, opcode, 0);
      made.bth.destination = all.victim.far->number();
      made.bth.partition = wire::roce::kDefaultPartition;
      made.bth.psn = psn_plus(near.first_psn(), offset);
      made.reth = {region.at(0), region.key, static_cast<std::uint32_t>(all.random())};
      const bool carries = parts_of(opcode).has(Parts::kPayload);
      const auto payload = sample::draw_bytes(all.random, carries ? all.random.below(4097) : 0);
      all.forge(all.victim.address, all.target(), made, payload);
    }
    all.turn(20);
    if (round % 20 == 19) all.expect_witness();
    // The victim may be gone; it can come back.
    if (all.victim.far->state() == QueuePair::State::error || all.random.chance(0.1)) {
      all.connect(all.victim);
    }
  }
  all.expect_witness();
}

TEST_F(RoceHostile, AnswersThatNobodyGave) {
  std::vector<std::byte> guarded(3 * 65536, std::byte{0xEE});
  const auto into = std::span(guarded).subspan(65536, 65536);
  const RemoteRegion& region = all.victim.region.remote();
  for (int round = 0; round < 300; ++round) {
    const auto& near = static_cast<const Pair&>(*all.victim.near);
    const bool in_name = round % 2 == 1;
    static_cast<void>(all.victim.near->post(WorkRequest::read(1, into, region.key, region.at(0))));
    static_cast<void>(
        all.victim.near->post(WorkRequest::fetch_add(2, region.key, region.at(0), 0)));
    for (int i = 0; i < 30; ++i) {
      const auto opcode = static_cast<PacketOpcode>(all.random.between(0x0D, 0x12));
      Headers made = sample::headers(all.random, opcode, 0);
      made.bth.destination = near.number();
      made.bth.partition = wire::roce::kDefaultPartition;
      made.bth.psn = psn_plus(near.first_psn(), static_cast<std::uint32_t>(all.random.below(200)));
      if (all.random.chance(0.3)) made.aeth = Aeth::rnr(0, 0);  // waits as long as can be said
      if (all.random.chance(0.3)) made.aeth = Aeth::nak(0, NakCode::sequence_error);
      const bool carries = parts_of(opcode).has(Parts::kPayload);
      const std::size_t bytes = carries ? all.random.below(4100) : 0;
      all.forge(in_name ? all.target() : all.unknown_peer(), all.victim.address, made,
                sample::draw_bytes(all.random, bytes));
    }
    all.turn(50);
    std::array<Completion, 16> completions;
    static_cast<void>(all.victim.queue.poll(completions));
    EXPECT_TRUE(in_name || all.victim.near->state() == QueuePair::State::connected);
    if (round % 30 == 29) all.expect_witness();
    if (in_name) {
      all.victim.near->close();
      static_cast<void>(all.victim.queue.poll(completions));
      all.connect(all.victim);
    }
  }
  const auto untouched = [](std::byte byte) { return byte == std::byte{0xEE}; };
  EXPECT_TRUE(std::all_of(guarded.begin(), guarded.begin() + 65536, untouched));
  EXPECT_TRUE(std::all_of(guarded.end() - 65536, guarded.end(), untouched));
  all.expect_witness();
}

TEST_F(RoceHostile, AFloodOfRequestsIsBoundedAndForgotten) {
  const std::size_t before = all.scene.endpoint.connections();
  for (int i = 0; i < 20'000; ++i) {
    RequestMessage asked = sample::request(all.random);
    const PortAddress from = all.unknown_peer();
    if (all.random.chance(0.9)) asked.service_id = service_id(7);
    asked.transport_service = 0;
    set_ip_service(asked, {from.udp_port, from.ip, all.target().ip});
    all.forge(from, all.target(), ConnectionMessage{all.random(), asked});
    take_turn(i);
    ASSERT_LE(all.scene.endpoint.connections(), before + Connector::kUnprovenMax);
  }
  EXPECT_EQ(all.scene.endpoint.connections(), before + Connector::kUnprovenMax);
  EXPECT_EQ(all.scene.endpoint.unproven(), Connector::kUnprovenMax);
  all.expect_witness();
  expect_forgotten(before);
  EXPECT_EQ(all.scene.endpoint.unproven(), 0u);
  all.connect(all.victim);
  all.expect_works(all.victim);
}

TEST_F(RoceHostile, AFloodOfMachinesThatAreThereIsBoundedAndForgotten) {
  const std::size_t before = all.scene.endpoint.connections();
  Crowd crowd(all);
  for (int i = 0; i < 20'000; ++i) {
    crowd.ask(all.unknown_peer());
    take_turn(i);
    if (i % 16 == 15) crowd.bring_cookies();
    ASSERT_LE(all.scene.endpoint.connections(), before + Connector::kAskedMax);
  }
  EXPECT_EQ(all.scene.endpoint.connections(), before + Connector::kAskedMax);
  all.expect_witness();
  expect_forgotten(before);
}

TEST_F(RoceHostile, AFloodOfRequestsKeepsNobodyOut) {
  // From any number of addresses, to an application that decides as fast as they come; and from
  // one, to an application that is slow.
  for (const bool one_address : {false, true}) {
    Crowd crowd(all);
    const auto flood = [&] {
      PortAddress from = all.unknown_peer();
      if (one_address) from.ip = IpAddress::v4(10, 0, 99, 99);
      crowd.ask(from);
    };
    for (std::size_t i = 0; i < 4 * Connector::kAskedMax; ++i) {
      flood();
      take_turn(static_cast<int>(i));
      crowd.bring_cookies();
    }
    const std::size_t full = one_address ? Connector::kAskedMany : Connector::kAskedMax;
    EXPECT_GE(all.scene.endpoint.connections(), full);

    QueuePairOptions near;
    near.sends = &all.victim.queue;
    QueuePairOptions far;
    far.sends = &all.victim.far_queue;
    auto& pair = all.victim.near;
    pair = *all.victim.endpoint.connect(to_text(all.target()) + "/7", near, {});
    all.victim.far.reset();
    while (pair->state() == QueuePair::State::connecting) {
      // As many as come before the victim's in a turn; of more than it serves the rest is lost.
      for (std::uint64_t left = all.random.below(20); left != 0; --left) flood();
      all.turn();
      if (all.random.chance(0.5)) crowd.bring_cookies();
      for (std::uint32_t left = one_address ? 1 : 100; left != 0; --left) {
        const auto request = all.scene.endpoint.next_request();
        if (!request) break;
        if (request->peer == to_text(all.victim.address)) {
          all.victim.far = *all.scene.endpoint.accept(*request, far, {});
        } else if (all.random.chance(0.5)) {  // others are thought about for ever
          all.scene.endpoint.reject(*request);
        }
      }
    }
    ASSERT_EQ(pair->state(), QueuePair::State::connected) << name(pair->ended_by());
    all.turn(1000);
    all.expect_works(all.victim);
    all.expect_witness();
  }
}

TEST_F(RoceHostile, ConnectionMessagesInNamesOfUnknownPeers) {
  const auto recorded = record(all.victim);
  std::vector<ConnectionMessage> genuine;
  for (const Recorded& packet : recorded) {
    const auto parsed = parse(packet.ib);
    if (!parsed || parsed->bth.opcode != datagram_send_only) continue;
    if (const auto message = parse_message(*parsed)) genuine.push_back(*message);
  }
  ASSERT_GE(genuine.size(), 3u);
  const ReplyMessage* reply = nullptr;
  for (const ConnectionMessage& message : genuine) {
    if (const auto* found = std::get_if<ReplyMessage>(&message.body)) reply = found;
  }
  ASSERT_NE(reply, nullptr);
  // With the right numbers, which an unknown peer cannot know, of both sides.
  const ConnectionIds ids[] = {reply->ids, {reply->ids.remote, reply->ids.local}};
  for (int i = 0; i < 2000; ++i) {
    for (ConnectionMessage message : sample::messages(all.random)) {
      std::visit(
          [&](auto& body) {
            if (all.random.chance(0.8)) body.ids = ids[all.random.below(2)];
          },
          message.body);
      all.forge(all.unknown_peer(), i % 2 == 0 ? all.target() : all.victim.address, message);
    }
    take_turn(i);
  }
  all.turn(100);
  EXPECT_EQ(all.victim.near->state(), QueuePair::State::connected);
  all.expect_works(all.victim);
  // In the right name, that connection ends.
  all.forge(all.victim.address, all.target(), {1, DisconnectMessage{ids[1], 0, {}}});
  all.turn(10);
  EXPECT_EQ(all.victim.far->state(), QueuePair::State::error);
  all.expect_witness();
}

TEST_F(RoceHostile, PeersThatStallForEver) {
  const std::size_t before = all.scene.endpoint.connections();
  std::vector<std::byte> room(8192);
  for (int round = 0; round < 60; ++round) {
    HandPeer peer(all.scene.network, HandScene::address(60), all.target());
    auto pair = all.scene.from(peer);
    ASSERT_NE(pair, nullptr);
    const Receive receive{1, room};
    ASSERT_EQ(pair->post_receives({&receive, 1}), 1u);
    const std::vector<std::byte> payload(1024);
    const RemoteRegion& region = all.victim.region.remote();
    switch (round % 4) {
      case 0: peer.send(request(send_first, peer.psn), payload); break;
      case 1:
        peer.send(request(write_first, peer.psn, {region.at(0), region.key, 5000}), payload);
        break;
      case 2:
        peer.send(request(read_request, peer.psn, {region.at(0), region.key, 1u << 20}));
        break;
      default: static_cast<void>(pair->post(WorkRequest::send(2, payload)));  // never answered
    }
    all.turn(5);
    all.expect_witness();
    if (round % 4 == 3) {
      for (int i = 0; i < 100; ++i) {
        all.scene.network.advance(10'000'000);
        all.turn(20);  // the clock is looked at seldom where nothing comes
      }
      EXPECT_EQ(pair->ended_by(), Status::retry_exceeded);
    }
    pair->close();
    const auto completions = all.scene.completions();
    EXPECT_EQ(completions.size(), round % 4 == 3 ? 2u : 1u);  // the receive comes back
    for (const Completion& each : completions) EXPECT_NE(each.status, Status::success);
  }
  expect_forgotten(before);
  all.expect_witness();
}

TEST_F(RoceHostile, ConnectedPeersThatDoAnything) {
  const std::size_t before = all.scene.endpoint.connections();
  for (int round = 0; round < 400; ++round) {
    HandPeer peer(all.scene.network, HandScene::address(60), all.target());
    const auto pair = all.scene.from(peer, 1024);
    ASSERT_NE(pair, nullptr);
    std::uint32_t psn = peer.psn;
    for (int i = 0; i < 40; ++i) {
      const auto opcode = static_cast<PacketOpcode>(all.random.below(0x15));
      Headers made = sample::headers(all.random, opcode, 0);
      made.bth.partition = wire::roce::kDefaultPartition;
      made.bth.psn = psn;
      const RemoteRegion& region = all.victim.region.remote();
      if (all.random.chance(0.7)) {
        made.reth = {region.at(all.random.below(region.bytes)), region.key,
                     static_cast<std::uint32_t>(all.random() >> all.random.between(32, 63))};
        made.atomic.address = region.at(8 * all.random.below(1000));
        made.atomic.key = region.key;
      }
      const bool carries = parts_of(opcode).has(Parts::kPayload);
      const std::size_t bytes = all.random.chance(0.7) ? 1024 : all.random.below(1100);
      peer.send(made, sample::draw_bytes(all.random, carries ? bytes : 0));
      if (all.random.chance(0.9)) psn = psn_plus(psn, 1);
      if (all.random.chance(0.5)) all.turn();
      ASSERT_LE(all.scene.engine(peer).responder().answers_waiting(), Responder::kAnswersMax + 1);
    }
    if (round % 20 == 19) all.expect_witness();
  }
  expect_forgotten(before);
}

}  // namespace
}  // namespace espalier::fabric::roce
