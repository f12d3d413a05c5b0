// SPDX-License-Identifier: Apache-2.0
// Strangers and liars where frames travel as datagrams: who introduces himself wrongly is sent
// away, who has not been given a key is not heard, and nobody else notices either.
#include "fabric/ofi/datagrams.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>

#include "base/random.hpp"
#include "fabric/ofi/testing/ofi_fixture.hpp"
#include "fabric/ofi/testing/raw_peer.hpp"

namespace espalier::fabric::ofi {
namespace {

using State = QueuePair::State;
using wire::ofi::DatagramKind;
using wire::ofi::Introduction;
using wire::ofi::Key;

constexpr const char* kProvider = RawPeer::kProvider;

/// A server, and a client of it who wants to be served whatever happens.
class OfiDatagrams : public ::testing::Test {
 protected:
  OfiDatagrams() {
    await([this] { return witness.pair->state() == State::connected; });
    witness_pair = server.pairs.back().get();
  }
  ~OfiDatagrams() override { server.pairs.clear(); }

  void await(const std::function<bool()>& done, const std::function<void()>& also = {}) {
    const base::Stopwatch watch;
    while (!done()) {
      server.endpoint->wait(0);
      server.turn();
      witness.endpoint->progress();
      if (also) also();
      ASSERT_LT(watch.elapsed_ns(), Client::kPatienceNs) << "waited in vain";
    }
  }
  void await(RawPeer& peer, const std::function<bool()>& done) {
    await(done, [&peer] { peer.turn(); });
  }
  void expect_witness_is_served() {
    std::array<std::byte, 64> bytes{};
    const auto read = WorkRequest::read(1, bytes, server.remote().key, server.remote().at(128));
    EXPECT_EQ(witness.run(read, [this] { server.turn(); }).status, Status::success);
    EXPECT_EQ(witness_pair->state(), State::connected);
  }
  /// So far that each has the other's key.
  void come_up(RawPeer& peer) {
    peer.say(peer.introduction());
    await(peer, [&] { return peer.server_introduction() && peer.key(); });
    peer.send_key();
    await(peer, [&] { return peer.has_sent_all(); });
  }

  Server server{kProvider};
  Client witness{server.address(), kProvider};
  QueuePair* witness_pair = nullptr;
};

TEST_F(OfiDatagrams, WhoIntroducesHimselfWronglyIsSentAway) {
  const std::vector<std::function<void(Introduction&)>> lies{
      [](auto& own) { own.magic ^= 1; },
      [](auto& own) { ++own.format; },
      [](auto& own) { ++own.address_format; },
      [](auto& own) { ++own.protocol; },
      [](auto& own) { ++own.protocol_version; },
      [](auto& own) { own.address_bytes = 0; },
      [](auto& own) { ++own.address_bytes; },
      [](auto& own) { own.address_bytes = UINT32_MAX; },
      [](auto& own) { own.reserved = 1; },
      [](auto& own) { own.address[0] ^= 0xFF; },                                // another family
      [](auto& own) { own.address[2] = own.address[3] = 0; },                   // no port
      [](auto& own) { own.address[offsetof(sockaddr_in, sin_addr) + 3] = 2; },  // another host
      [](auto& own) { own.address[wire::ofi::kProviderAddressMax - 1] = 1; },
  };
  for (const auto& lie : lies) {
    RawPeer peer(server);
    Introduction own = peer.introduction();
    lie(own);
    peer.say(own);
    await(peer, [&] { return peer.is_sent_away(); });
    EXPECT_FALSE(peer.key());
  }
  expect_witness_is_served();
}

TEST_F(OfiDatagrams, WhoSaysMoreThanAnIntroductionIsSentAway) {
  RawPeer peer(server);
  come_up(peer);
  const std::byte more{1};
  peer.say({&more, 1});
  await(peer, [&] { return peer.is_sent_away(); });
  expect_witness_is_served();
}

TEST_F(OfiDatagrams, AnIntroductionMayComeInPieces) {
  RawPeer peer(server);
  const Introduction own = peer.introduction();
  const auto bytes = std::as_bytes(std::span(&own, 1));
  for (std::size_t i = 0; i < bytes.size(); i += 7) {
    peer.say(bytes.subspan(i, std::min<std::size_t>(7, bytes.size() - i)));
    server.turn();
  }
  await(peer, [&] { return peer.key().has_value(); });
  expect_witness_is_served();
}

// The key goes to the address that was told, and not to who told it.
TEST_F(OfiDatagrams, WhoClaimsTheAddressOfAnotherGetsNoKey) {
  RawPeer owner(server);
  RawPeer liar(server);
  Introduction own = liar.introduction();
  std::ranges::copy(owner.introduction().address, own.address);
  liar.say(own);
  await([&] { return owner.key().has_value(); },
        [&] {
          owner.turn();
          liar.turn();
        });
  for (int i = 0; i < 200; ++i) {
    server.turn();
    liar.turn();
  }
  EXPECT_TRUE(liar.datagrams().empty());
  EXPECT_FALSE(liar.key());
  expect_witness_is_served();
}

// Short, long, and to numbers that were given to nobody.
TEST_F(OfiDatagrams, WhatStrangersSendIsDropped) {
  base::Random random(base::seed_from_environment(72));
  RawPeer peer(server);
  await(peer, [&] { return peer.server_introduction().has_value(); });
  for (int round = 0; round < 300; ++round) {
    std::vector<std::byte> noise(round % 10 == 0 ? DatagramEnd::kDatagramBytesMax + 1
                                                 : random.below(100));
    random.fill(noise);
    peer.send(noise);
  }
  await(peer, [&] { return peer.has_sent_all(); });
  expect_witness_is_served();
  EXPECT_FALSE(peer.is_sent_away());
  // Others come as if nothing had happened. Who sent all that may find his own way stopped up: once
  // the key that was sent to him did not reach him through ofi_rxm.
  RawPeer other(server);
  come_up(other);
  EXPECT_FALSE(other.is_sent_away());
  expect_witness_is_served();
}

TEST_F(OfiDatagrams, WrongKeysEndTheirLinkOnly) {
  const Key key{1};
  const auto bytes = std::as_bytes(std::span(&key, 1));
  const std::vector<std::function<void(RawPeer&, std::uint64_t)>> lies{
      [&](RawPeer& peer, auto to) { peer.send(to, 0, DatagramKind::key, bytes.first(7)); },
      [&](RawPeer& peer, auto to) { peer.send(to, 0, DatagramKind::frame, bytes); },
      [&](RawPeer& peer, auto to) { peer.send(to, 0, DatagramKind::invalid, bytes); },
      [&](RawPeer& peer, auto to) {
        peer.send(to, 0, DatagramKind::key, bytes);
        peer.send(to, 0, DatagramKind::key, bytes);
      },
  };
  for (const auto& lie : lies) {
    RawPeer peer(server);
    peer.say(peer.introduction());
    await(peer, [&] { return peer.server_introduction() && peer.key(); });
    lie(peer, peer.server_introduction()->number);
    await(peer, [&] { return peer.is_sent_away(); });
    expect_witness_is_served();
  }
}

// Whose number was not to come, or has come before.
TEST_F(OfiDatagrams, FramesOutOfNumberEndTheirLinkOnly) {
  const auto frame = FrameByHand().bytes();
  for (const std::vector<std::uint32_t>& sequence :
       {std::vector<std::uint32_t>{wire::ofi::kFrames}, {UINT32_MAX}, {3, 3}, {0, 0}}) {
    RawPeer peer(server);
    come_up(peer);
    for (const auto number : sequence) peer.send(*peer.key(), number, DatagramKind::frame, frame);
    await(peer, [&] { return peer.is_sent_away(); });
    expect_witness_is_served();
  }
}

TEST_F(OfiDatagrams, FramesThatOvertakeEachOtherAreTakenInOrder) {
  RawPeer peer(server);
  come_up(peer);
  std::array<std::byte, 8> message{};
  std::vector<std::vector<std::byte>> frames{
      FrameByHand().add(wire::ofi::RecordKind::hello, greeting_bytes()).bytes()};
  for (std::uint8_t i = 1; i < 6; ++i) {
    message.fill(std::byte{i});
    frames.push_back(FrameByHand().add(wire::ofi::RecordKind::send, message).bytes());
  }
  // The greeting first: before the answer nothing may follow it.
  peer.send(*peer.key(), 0, DatagramKind::frame, frames[0]);
  await(peer, [&] { return server.pairs.size() == 2; });
  QueuePair& pair = *server.pairs.back();
  std::array<std::array<std::byte, 8>, 5> into{};
  for (std::size_t i = 0; i < into.size(); ++i) {
    const Receive receive{i, into[i]};
    ASSERT_EQ(pair.post_receives({&receive, 1}), 1u);
  }
  for (const std::uint32_t number : {3u, 1u, 5u, 4u, 2u}) {
    peer.send(*peer.key(), number, DatagramKind::frame, frames[number]);
  }
  await(peer, [&] { return server.queue.waiting() == into.size(); });
  for (std::size_t i = 0; i < into.size(); ++i) EXPECT_EQ(into[i][0], std::byte(i + 1));
}

// More of them, one after the other, than there may be at a time: of one end, and of many.
TEST_F(OfiDatagrams, LinksComeAndGoWithoutLeavingAnythingBehind) {
  constexpr int kEnds = 10;
  constexpr int kOfEach = 15;
  for (int end = 0; end < kEnds; ++end) {
    Client late(server.address(), kProvider);
    QueuePairOptions options;
    options.sends = &late.queue;
    for (int i = 0; i < kOfEach; ++i) {
      if (i != 0) late.pair = *late.endpoint->connect(server.address(), options, {});
      await([&] { return late.pair->state() == State::connected; },
            [&] { late.endpoint->progress(); });
      late.pair->close();
      QueuePair& pair = *server.pairs.back();
      await([&] { return pair.state() == State::ended; }, [&] { late.endpoint->progress(); });
      EXPECT_EQ(pair.ended_by(), Status::success);
      server.pairs.pop_back();
    }
  }
  expect_witness_is_served();
}

}  // namespace
}  // namespace espalier::fabric::ofi
