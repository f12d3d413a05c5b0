// SPDX-License-Identifier: Apache-2.0
// Peers that vanish, hang, or violate the protocol, over real connections: their own connections
// end, and no other peer notices.
#include "fabric/ofi/endpoint.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <vector>

#include "base/loopback_address.hpp"
#include "base/random.hpp"
#include "base/testing/open_descriptors.hpp"
#include "fabric/ofi/testing/ofi_fixture.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::ofi {
namespace {

using wire::ofi::RecordKind;

/// A server, and a client of it that must be served in any case.
class OfiEndpointTest : public ::testing::Test {
 protected:
  OfiEndpointTest() {
    await([this] { return witness.pair->state() == QueuePair::State::connected; });
    witness_pair = server.pairs.back().get();
  }
  ~OfiEndpointTest() override { server.pairs.clear(); }

  void await(const std::function<bool()>& done, const std::function<void()>& also = {}) {
    const base::Stopwatch watch;
    while (!done()) {
      server.turn();
      witness.endpoint->progress();
      if (also) also();
      ASSERT_LT(watch.elapsed_ns(), Client::kTimeoutNs) << "waited in vain";
    }
  }
  void expect_witness_is_served() {
    std::array<std::byte, 64> bytes{};
    const auto read = WorkRequest::read(1, bytes, server.remote().key, server.remote().at(128));
    EXPECT_EQ(witness.run(read, [this] { server.turn(); }).status, Status::success);
    EXPECT_EQ(witness_pair->state(), QueuePair::State::connected);
  }
  /// Connects by hand, so far that the server has a pair for it.
  void accept(HandPeer& peer) {
    const std::size_t before = server.pairs.size();
    await([&] { return peer.is_up(); }, [&] { peer.turn(); });
    peer.say(FrameByHand().add(RecordKind::hello, greeting_bytes()).bytes());
    await([&] { return server.pairs.size() > before; }, [&] { peer.turn(); });
    await([&] { return peer.has_heard(RecordKind::welcome); }, [&] { peer.turn(); });
  }

  Server server;
  Client witness{server.address()};
  QueuePair* witness_pair = nullptr;
};

/// Many clients that connect, and send nothing.
class SilentCrowd final : private FrameTaker, private AcceptHandler {
 public:
  void dial(const roce::PortAddress& where) {
    const auto link = connections_.dial(where);
    ASSERT_TRUE(link) << message(link.error());
    (*link)->hand_to(*this);
  }
  void turn() {
    connections_.look();
    static_cast<void>(connections_.take());
    static_cast<void>(connections_.maintain(base::monotonic_ns()));
  }

 private:
  void take_frame(std::span<const std::byte>) override {}
  void lose_channel() override {}
  [[nodiscard]] bool has_room() override { return false; }
  void accept(ProviderChannel&, std::string) override {}

  Connections connections_{*Library::load(), kProvider, *this};
};

TEST_F(OfiEndpointTest, FramesThatAreNoneEndTheirConnectionOnly) {
  base::Random random(base::seed_from_environment(62));
  for (int round = 0; round < 40; ++round) {
    HandPeer peer(server);
    accept(peer);
    QueuePair& pair = *server.pairs.back();
    std::vector<std::byte> noise(1 + random.below(8000));
    random.fill(noise);
    peer.say(noise);
    await(
        [&] { return pair.state() == QueuePair::State::error && peer.has_heard(RecordKind::end); },
        [&] { peer.turn(); });
    EXPECT_EQ(pair.ended_by(), Status::remote_invalid);
    expect_witness_is_served();
  }
}

TEST_F(OfiEndpointTest, RecordsOfNoiseEndTheirConnectionOnly) {
  base::Random random(base::seed_from_environment(63));
  for (int round = 0; round < 40; ++round) {
    HandPeer peer(server);
    accept(peer);
    QueuePair& pair = *server.pairs.back();
    for (int frame = 0; frame < 8 && pair.state() == QueuePair::State::connected; ++frame) {
      FrameByHand by_hand;
      std::vector<std::byte> payload(random.below(200));
      random.fill(payload);
      wire::ofi::RecordHead head{};
      head.kind = static_cast<std::uint8_t>(random.below(20));
      head.bytes = static_cast<std::uint32_t>(payload.size());
      head.message_bytes = static_cast<std::uint32_t>(random.below(400));
      head.key = static_cast<std::uint32_t>(random());
      head.remote = random();
      peer.say(by_hand.add(head, payload).bytes());
      for (int i = 0; i < 20; ++i) {
        server.turn();
        peer.turn();
      }
    }
    peer.vanish();
    await([&] { return pair.state() == QueuePair::State::error; });
    expect_witness_is_served();
  }
  EXPECT_TRUE(std::all_of(server.memory.begin(), server.memory.end(),
                          [](std::byte b) { return b == std::byte{0}; }));
}

// An endpoint that has events takes all frames that there are before it goes on: there must be an
// end to them.
TEST_F(OfiEndpointTest, WhoSendsMoreThanThereIsRoomForIsCutOff) {
  HandPeer peer(server);
  accept(peer);
  QueuePair& pair = *server.pairs.back();
  for (std::uint32_t i = 0; i < 25 * wire::ofi::kFrames; ++i) {
    peer.say(FrameByHand().bytes());
    peer.turn();
  }
  Client late(server.address());
  await([&] { return pair.state() == QueuePair::State::error; },
        [&] {
          late.endpoint->progress();
          server.endpoint->wait(0);
        });
  EXPECT_EQ(pair.ended_by(), Status::retry_exceeded);
  expect_witness_is_served();
}

TEST_F(OfiEndpointTest, APeerThatVanishesIsNoticedAndNobodyElseNotices) {
  HandPeer peer(server);
  accept(peer);
  QueuePair& pair = *server.pairs.back();
  const std::array<std::byte, 8> bytes{};
  ASSERT_EQ(pair.post(WorkRequest::send(77, bytes)).taken, 1u);
  ASSERT_EQ(pair.post(WorkRequest::send(78, bytes)).taken, 1u);
  server.turn();
  peer.vanish();
  await([&] { return pair.state() == QueuePair::State::error; });
  EXPECT_EQ(pair.ended_by(), Status::retry_exceeded);
  Completion ended[3];
  ASSERT_EQ(server.queue.poll(ended), 2u);
  EXPECT_EQ(ended[0].work_id, 77u);
  EXPECT_EQ(ended[0].status, Status::retry_exceeded);
  EXPECT_EQ(ended[1].status, Status::flushed);
  expect_witness_is_served();
}

TEST_F(OfiEndpointTest, APeerThatHangsIsGivenUpAndNobodyElseNotices) {
  server.options.timeout_ns = 1'000'000;
  server.options.retries = 2;
  HandPeer peer(server);
  accept(peer);
  QueuePair& pair = *server.pairs.back();
  ASSERT_EQ(pair.post(WorkRequest::send(77, {})).taken, 1u);
  await([&] { return pair.state() == QueuePair::State::error; });  // the peer takes no turn
  EXPECT_EQ(pair.ended_by(), Status::retry_exceeded);
  expect_witness_is_served();
}

TEST_F(OfiEndpointTest, WhoGreetsWronglyIsTurnedAway) {
  auto other_format = greeting_bytes();
  other_format[8] = std::byte{9};
  const std::vector<std::byte> too_much(kConnectDataMax + 1);
  const std::vector<std::vector<std::byte>> greetings{
      FrameByHand().add(RecordKind::hello, other_format).bytes(),
      FrameByHand().add(RecordKind::hello, greeting_bytes(too_much)).bytes(),
      FrameByHand().add(RecordKind::hello).bytes(),
      FrameByHand().add(RecordKind::welcome, greeting_bytes()).bytes(),
      FrameByHand().add(RecordKind::read).bytes(),
      FrameByHand()
          .add(RecordKind::hello, greeting_bytes())
          .add(RecordKind::hello, greeting_bytes())
          .bytes(),
      FrameByHand(1).add(RecordKind::hello, greeting_bytes()).bytes(),
      std::vector<std::byte>(100),
  };
  for (const auto& greeting : greetings) {
    HandPeer peer(server);
    await([&] { return peer.is_up(); }, [&] { peer.turn(); });
    peer.say(greeting);
    await([&] { return peer.has_heard(RecordKind::refused); }, [&] { peer.turn(); });
    EXPECT_FALSE(server.endpoint->next_request());
    EXPECT_EQ(server.pairs.size(), 1u);
  }
  expect_witness_is_served();
}

TEST_F(OfiEndpointTest, WhoSaysNothingGivesWayToWhoDoes) {
  constexpr int kSilent = 140;
  SilentCrowd crowd;
  for (int i = 0; i < kSilent; ++i) {
    crowd.dial(server.endpoint->listens_at());
    for (int turn = 0; turn < 20; ++turn) {
      server.turn();
      crowd.turn();
    }
  }
  Client late(server.address());
  await([&] { return late.pair->state() == QueuePair::State::connected; },
        [&] { late.endpoint->progress(); });
  expect_witness_is_served();
}

// Not even what the provider itself expects first: nothing, noise, and a header that promises 100
// bytes which do not come (door_patience.hpp).
TEST_F(OfiEndpointTest, BareSocketsStopNobody) {
  base::Random random(base::seed_from_environment(64));
  std::vector<memory::Descriptor> sockets;
  const base::LoopbackAddress at(AF_INET, server.endpoint->listens_at().udp_port);
  for (std::size_t i = 0; i < 30; ++i) {
    sockets.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(sockets.back().number(), at.get(), at.bytes()), 0);
    if (i % 3 == 0) continue;
    std::vector<std::byte> said(1 + random.below(300));
    random.fill(said);
    if (i % 3 == 1) {
      said.assign(32, std::byte{0});
      said[0] = std::byte{3};
      said[3] = std::byte{100};
      said[24] = std::byte{1};
    }
    ASSERT_GT(::send(sockets.back().number(), said.data(), said.size(), MSG_NOSIGNAL), 0);
  }
  for (int i = 0; i < 200; ++i) server.turn();
  Client late(server.address());
  await([&] { return late.pair->state() == QueuePair::State::connected; },
        [&] { late.endpoint->progress(); });
  expect_witness_is_served();
  // libfabric forgets those that are still silent when a listener ends, memory and all; not those
  // that hang up before.
  sockets.clear();
  for (int i = 0; i < 200; ++i) server.endpoint->wait(0);
}

// Also if a call failed before with an error that libfabric would take for one of its own
// (forget_errors() in device.cpp).
TEST_F(OfiEndpointTest, BareSocketsThatHangUpAreForgotten) {
  const std::size_t before = base::open_descriptors();
  const base::LoopbackAddress at(AF_INET, server.endpoint->listens_at().udp_port);
  for (const std::size_t said : {0, 5, 32}) {
    std::vector<memory::Descriptor> sockets;
    for (int i = 0; i < 8; ++i) {
      sockets.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      ASSERT_EQ(::connect(sockets.back().number(), at.get(), at.bytes()), 0);
    }
    await([&] { return base::open_descriptors() >= before + 2 * sockets.size(); });
    // Of the version that it wants, and promising more.
    std::vector<std::byte> header(said);
    if (said != 0) header[0] = header[3] = std::byte{3};
    for (const memory::Descriptor& socket : sockets) {
      ::send(socket.number(), header.data(), header.size(), MSG_NOSIGNAL);
    }
    sockets.clear();
    await([&] { return base::open_descriptors() == before; }, [] { errno = EAGAIN; });
    if (HasFailure()) return;
  }
  expect_witness_is_served();
}

TEST_F(OfiEndpointTest, WhoAskedAndLeftIsNotLetIn) {
  server.lets_in = false;
  HandPeer peer(server);
  await([&] { return peer.is_up(); }, [&] { peer.turn(); });
  peer.say(FrameByHand().add(RecordKind::hello, greeting_bytes()).bytes());
  std::optional<ConnectRequest> request;
  await([&] { return (request = server.endpoint->next_request()).has_value(); },
        [&] { peer.turn(); });
  EXPECT_TRUE(request->peer.starts_with("127.0.0.1:"));
  peer.vanish();
  // Noticed before, or soon after.
  for (int i = 0; i < 100; ++i) server.turn();
  const auto accepted = server.endpoint->accept(*request, server.options, {});
  if (accepted) {
    await([&] { return (*accepted)->state() == QueuePair::State::error; });
    EXPECT_EQ((*accepted)->ended_by(), Status::retry_exceeded);
  } else {
    EXPECT_EQ(accepted.error().code, Code::not_found);
  }
  expect_witness_is_served();
}

TEST_F(OfiEndpointTest, AddressesThatCannotBeAreRefused) {
  QueuePairOptions options;
  CompletionQueue queue(*witness.endpoint, 8);
  options.sends = &queue;
  for (const std::string address : {"", "localhost:1", "127.0.0.1:0", "127.0.0.1:x"}) {
    const auto made = witness.endpoint->connect(address, options, {});
    ASSERT_FALSE(made) << address;
    EXPECT_EQ(made.error().code, Code::invalid_argument) << address;
  }
  EXPECT_EQ(server.endpoint->listen("127.0.0.1:0").error().code, Code::already_exists);
  auto other = *open(kProvider, *RegionTable::create());
  EXPECT_EQ(other->listen(server.address()).error().code, Code::already_exists);
}

// What is done in wait() itself is not slept over.
TEST_F(OfiEndpointTest, AReceiveThatIsPostedLateIsToldOfBeforeSleeping) {
  ASSERT_EQ(witness.pair->post(WorkRequest::send(1, {})).taken, 1u);
  for (int i = 0; i < 100; ++i) {
    witness.endpoint->progress();
    server.turn();
  }
  const Receive receive{5, {}};
  ASSERT_EQ(witness_pair->post_receives({&receive, 1}), 1u);
  while (server.queue.waiting() == 0) server.endpoint->wait(UINT64_MAX);
}

TEST_F(OfiEndpointTest, AnEndpointThatWasWokenDoesNotSleep) {
  witness.endpoint->wake();
  witness.endpoint->wait(UINT64_MAX);
}

}  // namespace
}  // namespace espalier::fabric::ofi
