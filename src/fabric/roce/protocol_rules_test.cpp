// SPDX-License-Identifier: Apache-2.0
// Single rules of the engine of `roce`, packet by packet: what seeds reach seldom, or see only as a
// delay. Most were faults once.
#include <gtest/gtest.h>

#include <array>

#include "base/random.hpp"
#include "fabric/roce/testing/hand_peer.hpp"

namespace espalier::fabric::roce {
namespace {

using enum PacketOpcode;

class RoceRules : public ::testing::Test {
 protected:
  RoceRules() : scene(base::seed_from_environment(7)) {}
  [[nodiscard]] RegionKey key() const { return scene.region.remote().key; }
  [[nodiscard]] std::uint64_t at(std::uint64_t offset) const {
    return scene.region.remote().at(offset);
  }
  HandScene scene;
  HandPeer peer{scene.network, HandScene::address(1), HandScene::address()};
};

TEST_F(RoceRules, ARefusalDoesNotOvertakeTheAnswersBeforeIt) {
  const auto pair = scene.from(peer);
  peer.send(request(read_request, peer.psn, {at(0), key(), 2048}));
  peer.send(request(write_only, peer.psn + 2, {at(0), key() + 1, 8}), std::vector<std::byte>(8));
  peer.send(request(write_only, peer.psn + 3, {at(0), key(), 8}), std::vector<std::byte>(8));
  scene.turn(4);
  const auto heard = peer.hear();
  ASSERT_GE(heard.size(), 3u);
  EXPECT_EQ(heard[0].headers.bth.opcode, read_response_first);
  EXPECT_EQ(heard[1].headers.bth.opcode, read_response_last);
  EXPECT_EQ(heard[2].headers.aeth.kind(), Aeth::Kind::nak);
}

TEST_F(RoceRules, ADuplicateOfAReadWhoseRegionIsGoneEndsNothing) {
  const auto pair = scene.from(peer);
  auto other = *scene.endpoint.regions().offer({scene.memory.data(), 4096}, RemoteRights::read);
  const Headers read =
      request(read_request, peer.psn, {other.remote().base, other.remote().key, 64});
  peer.send(read);
  scene.turn(3);
  EXPECT_EQ(count_of(peer.hear(), read_response_only), 1u);
  other.revoke();  // the peer has said, in whatever way, that it is done
  peer.send(read);
  scene.turn(3);
  // A requester that still waits for the answer must learn that it does not come.
  const auto heard = peer.hear();
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard[0].headers.aeth, Aeth::nak(1, NakCode::remote_access));
  EXPECT_EQ(pair->state(), QueuePair::State::connected);
  peer.send(request(write_only, peer.psn + 1, {at(0), key(), 0}));
  scene.turn(3);
  EXPECT_EQ(count_of(peer.hear(), acknowledge), 1u);
}

// A part of what was asked, from a packet of its own on, and nothing else.
TEST_F(RoceRules, ADuplicateOfAReadAsksForNoMoreThanItDid) {
  const auto pair = scene.from(peer);
  for (std::size_t i = 0; i < 8192; ++i) scene.memory[i] = static_cast<std::byte>(i / 1024);
  peer.send(request(read_request, peer.psn, {at(0), key(), 3000}));
  scene.turn(3);
  EXPECT_EQ(peer.hear().size(), 3u);
  const auto other =
      *scene.endpoint.regions().offer({scene.memory.data(), 8192}, RemoteRights::read);
  const std::array wrong{
      request(read_request, peer.psn, {at(0), key(), 3001}),             // longer
      request(read_request, peer.psn, {at(8), key(), 3000}),             // beyond its end
      request(read_request, peer.psn, {at(0), other.remote().key, 64}),  // by another key
      request(read_request, peer.psn + 1, {at(0), key(), 3000}),         // by fewer packets
      request(read_request, peer.psn + 2, {at(4096), key(), 8}),         // from elsewhere
      request(read_request, peer.psn - 1, {at(0), key(), 8}),            // never asked for
  };
  for (const Headers& each : wrong) {
    peer.send(each);
    scene.turn(3);
    EXPECT_EQ(peer.hear().size(), 0u) << &each - wrong.data();
  }
  peer.send(request(read_request, peer.psn + 1, {at(1024), key(), 1976}));
  scene.turn(3);
  const auto heard = peer.hear();
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_EQ(heard[0].headers.bth.psn, peer.psn + 1);
  EXPECT_EQ(heard[0].payload.front(), std::byte{1});
  EXPECT_EQ(heard[1].payload.back(), std::byte{2});
  EXPECT_EQ(pair->state(), QueuePair::State::connected);
}

TEST_F(RoceRules, ADuplicateOfAnAtomicIsAnsweredFromMemoryOrNotAtAll) {
  const auto pair = scene.from(peer);
  base::store_le<std::uint64_t>(scene.memory.data(), 40);
  const auto answers = [this] {
    scene.turn(10);
    std::vector<std::uint64_t> old;
    for (const Heard& each : peer.hear()) {
      if (each.headers.bth.opcode != atomic_acknowledge) continue;
      old.push_back(each.headers.atomic_ack.original);
    }
    return old;
  };
  peer.send(fetch_add_request(peer.psn, at(0), key(), 2));
  EXPECT_EQ(answers(), std::vector<std::uint64_t>{40});
  Headers swap = fetch_add_request(peer.psn, at(0), key(), 2);
  swap.bth.opcode = compare_swap;
  peer.send(swap);
  EXPECT_EQ(answers(), std::vector<std::uint64_t>{});
  peer.send(fetch_add_request(peer.psn, at(64), key(), 7));  // whatever it says now
  EXPECT_EQ(answers(), std::vector<std::uint64_t>{40});
  for (std::uint32_t i = 1; i <= Responder::kRemembered; ++i) {
    peer.send(fetch_add_request(peer.psn + i, at(8), key(), 1));
  }
  EXPECT_EQ(answers().size(), Responder::kRemembered);
  peer.send(fetch_add_request(peer.psn, at(0), key(), 2));  // forgotten
  EXPECT_EQ(answers(), std::vector<std::uint64_t>{});
  EXPECT_EQ(base::load_le<std::uint64_t>(scene.memory.data()), 42u);
  EXPECT_EQ(base::load_le<std::uint64_t>(scene.memory.data() + 64), 0u);
  EXPECT_EQ(base::load_le<std::uint64_t>(scene.memory.data() + 8), Responder::kRemembered);
  EXPECT_EQ(pair->state(), QueuePair::State::connected);
}

TEST_F(RoceRules, WhatMakesNoSenseIsRefusedAsSuch) {
  struct Wrong {
    const char* what;
    Headers headers;
    std::size_t payload;
  };
  const std::array wrongs{
      Wrong{"no word", fetch_add_request(0, at(4), key(), 1), 0},
      Wrong{"without a first", request(write_middle, 0), 1024},
      Wrong{"without a first", request(send_last, 0), 8},
      Wrong{"less than it says", request(write_only, 0, {at(0), key(), 100}), 8},
      Wrong{"longer than any", request(read_request, 0, {at(0), key(), 1u << 31 | 1}), 0},
  };
  for (const Wrong& wrong : wrongs) {
    SCOPED_TRACE(wrong.what);
    const auto pair = scene.from(peer);
    ASSERT_TRUE(pair);
    Headers headers = wrong.headers;
    headers.bth.psn = peer.psn;
    peer.send(headers, std::vector<std::byte>(wrong.payload));
    scene.turn(3);
    const auto heard = peer.hear();
    ASSERT_GE(heard.size(), 1u);
    EXPECT_EQ(heard[0].headers.bth.opcode, acknowledge);
    EXPECT_EQ(heard[0].headers.aeth, Aeth::nak(0, NakCode::invalid_request));
    EXPECT_EQ(pair->state(), QueuePair::State::error);
    scene.turn(20);
    peer.hear();
  }
}

TEST_F(RoceRules, AnswersThatWaitAreBounded) {
  const auto pair = scene.from(peer);
  scene.network.faults.room_packets = 1;
  for (std::uint32_t i = 0; i < 4; ++i) {
    peer.send(request(read_request, peer.psn + 1024 * i, {at(0), key(), 1u << 20}));
  }
  const std::uint32_t next = peer.psn + 4096;
  for (int i = 0; i < 2000; ++i) {
    peer.send(request(send_only, next), std::vector<std::byte>(8));  // there is no receive
    peer.send(request(write_only, next + 5, {at(0), key(), 0}));     // a gap
  }
  for (int i = 0; i < 400; ++i) scene.turn();
  EXPECT_LE(scene.engine(peer).responder().answers_waiting(), Responder::kAnswersMax + 2);
  EXPECT_EQ(pair->state(), QueuePair::State::connected);
}

TEST_F(RoceRules, RequestsThatFindNoRoomForTheirAnswersAreAsIfLost) {
  const auto pair = scene.from(peer);
  scene.network.faults.room_packets = 1;
  constexpr std::uint32_t kManyAnswers = Responder::kAnswersMax + 200;
  const std::uint32_t first = peer.psn;
  for (std::uint32_t i = 0; i < kManyAnswers; ++i) {
    peer.send(fetch_add_request(first + i, at(0), key(), 1));
  }
  scene.turn(20);
  ASSERT_EQ(pair->state(), QueuePair::State::connected);
  scene.network.faults.room_packets = 0;
  scene.turn(100);
  const std::size_t answered = count_of(peer.hear(), atomic_acknowledge);
  ASSERT_LT(answered, kManyAnswers);
  for (auto i = static_cast<std::uint32_t>(answered); i < kManyAnswers; ++i) {
    peer.send(fetch_add_request(first + i, at(0), key(), 1));
  }
  scene.turn(20);
  EXPECT_EQ(answered + count_of(peer.hear(), atomic_acknowledge), kManyAnswers);
  EXPECT_EQ(base::load_le<std::uint64_t>(scene.memory.data()), kManyAnswers);
}

TEST_F(RoceRules, WhatIsRememberedIsOfThisRoundOfNumbers) {
  const auto pair = scene.from(peer);
  Pair& engine = scene.engine(peer);
  const auto take = [&](const Headers& headers) {
    Packet packet;
    static_cast<Headers&>(packet) = headers;
    engine.packet(peer.own, packet);
  };
  const std::uint32_t psn = peer.psn;
  take(fetch_add_request(psn, at(0), key(), 1));
  for (std::uint32_t i = 1; i < 1u << 24; ++i)
    take(request(write_only, psn + i, {at(0), key(), 0}));
  take(fetch_add_request(psn, at(0), key(), 1));
  scene.turn(3);
  peer.hear();
  take(fetch_add_request(psn, at(0), key(), 1));
  scene.turn(3);
  const auto heard = peer.hear();
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard[0].headers.atomic_ack.original, 1u);
  EXPECT_EQ(base::load_le<std::uint64_t>(scene.memory.data()), 2u);
}

TEST_F(RoceRules, APairThatFillsThePortKeepsNobodyWaiting) {
  HandPeer greedy{scene.network, HandScene::address(3), HandScene::address()};
  const auto greedy_pair = scene.from(greedy);
  const auto pair = scene.from(peer);
  scene.network.faults.room_packets = 4;
  for (std::uint32_t i = 0; i < 8; ++i) {
    greedy.send(request(read_request, greedy.psn + 1024 * i, {at(0), key(), 1u << 20}));
  }
  scene.turn(3);
  peer.send(request(read_request, peer.psn, {at(0), key(), 4096}));
  scene.turn(10);
  EXPECT_EQ(count_of(peer.hear(), read_response_last), 1u);
}

TEST_F(RoceRules, WhoSendsHasHeardThatItIsConnected) {
  const auto pair = scene.from(peer, 1024, false);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    peer.send(request(write_only, peer.psn + i, {at(0), key(), 0}));
    scene.turn(1000);
  }
  EXPECT_EQ(pair->state(), QueuePair::State::connected);
}

TEST_F(RoceRules, ATerminateMessageMayOvertakeTheReplyBeforeIt) {
  const auto pair = scene.to(peer, false);
  peer.say({2, DisconnectMessage{peer.ids, peer.pair, {}}});
  scene.turn(3);
  EXPECT_EQ(pair->state(), QueuePair::State::error);
  scene.reply(peer);
  EXPECT_EQ(pair->state(), QueuePair::State::error);
  EXPECT_EQ(scene.endpoint.connections(), 0u);
}

TEST_F(RoceRules, AMessageIsSentAgainWhenTheReceiverSaidAndNotLater) {
  const auto pair = scene.to(peer);
  std::vector<std::byte> message(8);
  ASSERT_EQ(pair->post(WorkRequest::send(1, message)).taken, 1u);
  scene.turn(3);
  ASSERT_EQ(count_of(peer.hear(), send_only), 1u);
  peer.send(acknowledgement(peer.peer_psn, Aeth::rnr(0, rnr_timer(40'000))));
  scene.turn(3);
  ASSERT_EQ(count_of(peer.hear(), send_only), 0u);
  const std::uint64_t completions = scene.network.now_ns();
  while (count_of(peer.hear(), send_only) == 0) scene.turn();
  EXPECT_LT(scene.network.now_ns() - completions, 200'000u);
}

TEST_F(RoceRules, WhoDoesNotAnswerIsAskedOftenInTheTimeOfTheRetries) {
  const auto pair = scene.to(peer);
  std::vector<std::byte> message(8);
  const std::uint64_t begun = scene.network.now_ns();
  ASSERT_EQ(pair->post(WorkRequest::send(1, message)).taken, 1u);
  std::size_t asked = 0;
  while (pair->state() == QueuePair::State::connected) {
    scene.turn();
    asked += count_of(peer.hear(), send_only);
  }
  EXPECT_EQ(pair->ended_by(), Status::retry_exceeded);
  EXPECT_GE(asked, 28u);  // where a fifth gets lost each way, all are lost once in 10^12 times
  const std::uint64_t took = scene.network.now_ns() - begun;
  EXPECT_GE(took, 8 * scene.options().timeout_ns);
  EXPECT_LE(took, 9 * scene.options().timeout_ns);
}

// A program does something else between posting and looking, as a scan does in its caller's code.
TEST_F(RoceRules, TimeInWhichNobodyTurnsTheEndpointIsNoWaitForAnAnswer) {
  const auto pair = scene.to(peer);
  std::vector<std::byte> message(8);
  const std::uint64_t retries_ns = 8 * scene.options().timeout_ns;
  std::uint32_t psn = peer.peer_psn;
  for (std::uint32_t i = 0; i < 3; ++i) {
    ASSERT_EQ(pair->post(WorkRequest::send(i, message)).taken, 1u);
    scene.network.advance(10 * retries_ns);
    while (count_of(peer.hear(), send_only) == 0) scene.turn();
    peer.send(acknowledgement(psn++, Aeth::ack(i + 1)));
    scene.turn(3);
    ASSERT_EQ(pair->state(), QueuePair::State::connected);
    ASSERT_EQ(scene.completions().size(), 1u);
  }
  // It is found out all the same that a peer is gone, by as many looks as there are tries.
  ASSERT_EQ(pair->post(WorkRequest::send(4, message)).taken, 1u);
  int looks = 0;
  for (; pair->state() == QueuePair::State::connected; ++looks) {
    scene.network.advance(10 * retries_ns);
    scene.turn(20);  // the clock is looked at seldom where nothing comes
    ASSERT_LT(looks, 100);
  }
  EXPECT_EQ(pair->ended_by(), Status::retry_exceeded);
  EXPECT_GE(looks, 8);
}

TEST_F(RoceRules, APeerThatHasBecomeSlowIsNotAskedTwiceForEver) {
  const auto pair = scene.to(peer);
  std::vector<std::byte> message(8);
  std::uint32_t next = 0;  // that was not heard before
  std::size_t duplicates = 0;
  // Always two are in flight. 500 are answered immediately, then each after two milliseconds.
  ASSERT_EQ(pair->post(WorkRequest::send(0, message)).taken, 1u);
  for (std::uint32_t i = 0; i < 600; ++i) {
    ASSERT_EQ(pair->post(WorkRequest::send(i + 1, message)).taken, 1u);
    scene.turn(i < 500 ? 2 : 100);
    for (const Heard& heard : peer.hear()) {
      const bool again = psn_distance(psn_plus(peer.peer_psn, next), heard.headers.bth.psn) < 0;
      if (!again) ++next;
      if (again && i >= 550) ++duplicates;
    }
    peer.send(acknowledgement(peer.peer_psn + i, Aeth::ack(i + 1)));
    scene.turn(3);
    ASSERT_EQ(scene.completions().size(), 1u);
  }
  EXPECT_EQ(duplicates, 0u);
}

TEST_F(RoceRules, AGapIsToldOnceForEachTimeThatThePeerGoesBack) {
  const auto pair = scene.from(peer);
  const auto naks_to = [&](std::uint32_t ahead) {
    peer.send(request(write_only, peer.psn + ahead, {at(0), key(), 0}));
    scene.turn(3);
    const auto heard = peer.hear();
    for (const Heard& each : heard) {
      EXPECT_EQ(each.headers.aeth, Aeth::nak(0, NakCode::sequence_error));
      EXPECT_EQ(each.headers.bth.psn, peer.psn);
    }
    return heard.size();
  };
  EXPECT_EQ(naks_to(1), 1u);
  EXPECT_EQ(naks_to(2), 0u);
  EXPECT_EQ(naks_to(4), 0u);
  EXPECT_EQ(naks_to(1), 1u);  // sent again, and the first is lost again
  EXPECT_EQ(naks_to(2), 0u);
}

TEST_F(RoceRules, WhatIsLostAgainIsAskedForAgainButNoEchoIsBelieved) {
  const auto pair = scene.to(peer);
  std::array<std::byte, 64> into{};
  const auto answer = [&](std::uint32_t ahead) {
    Headers made;
    made.bth.opcode = read_response_only;
    made.bth.psn = peer.peer_psn + ahead;
    peer.send(made, into);
    scene.turn(2);
    return count_of(peer.hear(), read_request);
  };
  const auto post = [&](std::uint64_t reads) {
    for (; reads != 0; --reads) {
      ASSERT_EQ(pair->post(WorkRequest::read(reads, into, 1, 4096)).taken, 1u);
    }
    scene.turn(2);
    peer.hear();
  };
  post(1);
  scene.turn(10);
  EXPECT_EQ(answer(0), 0u);  // so that it knows how soon answers come: after a tenth of 1 ms
  post(8);
  scene.turn(2);
  EXPECT_EQ(answer(3), 8u);  // the first two are missing: all go again
  EXPECT_EQ(answer(4), 0u);  // an echo
  EXPECT_EQ(answer(5), 0u);
  scene.turn(10);
  EXPECT_EQ(answer(3), 8u);  // of the second time, in which it was lost again
  EXPECT_EQ(answer(4), 0u);
}

TEST_F(RoceRules, EachPacketOfAWriteFindsItsRegionAnew) {
  const auto pair = scene.from(peer);
  auto other = *scene.endpoint.regions().offer({scene.memory.data(), 4096}, RemoteRights::write);
  const Reth reth{other.remote().base, other.remote().key, 2048};
  const std::vector<std::byte> payload(1024, std::byte{7});
  peer.send(request(write_first, peer.psn, reth), payload);
  scene.turn(3);
  EXPECT_EQ(scene.memory[1023], std::byte{7});
  other.revoke();
  peer.send(request(write_last, peer.psn + 1), payload);
  scene.turn(3);
  EXPECT_EQ(scene.memory[1024], std::byte{0});
  const auto heard = peer.hear();
  ASSERT_FALSE(heard.empty());
  EXPECT_EQ(heard.back().headers.aeth, Aeth::nak(0, NakCode::remote_access));
  EXPECT_EQ(pair->state(), QueuePair::State::error);
}

class RoceLateAcknowledgements : public RoceRules {
 protected:
  RoceLateAcknowledgements() {
    scene.delayed_acks = true;
    pair = scene.from(peer);
    peer.hear();
  }
  ~RoceLateAcknowledgements() override { pair.reset(); }
  /// A WRITE of the peer's arrives.
  void written() {
    peer.send(request(write_only, peer.psn++, {at(0), key(), 8}), std::vector<std::byte>(8));
    scene.network.advance(10'000);
    scene.endpoint.progress();
  }
  /// What leaves now, and nothing that time or a turn would bring.
  std::vector<Heard> left() {
    scene.network.advance(1000);
    return peer.hear();
  }
  void expect_acknowledged(const std::vector<Heard>& heard) const {
    ASSERT_EQ(count_of(heard, acknowledge), 1u);
    EXPECT_EQ(heard.back().headers.bth.opcode, acknowledge);
    EXPECT_EQ(heard.back().headers.bth.psn, peer.psn - 1);
    EXPECT_EQ(heard.back().headers.aeth.kind(), Aeth::Kind::ack);
  }
  std::unique_ptr<QueuePair> pair;
};

TEST_F(RoceLateAcknowledgements, LeaveBehindWhatIsSentNext) {
  written();
  written();
  EXPECT_TRUE(left().empty());
  const std::vector<std::byte> word(8);
  ASSERT_EQ(pair->post(WorkRequest::write(1, word, 5, 6)).taken, 1u);
  scene.endpoint.progress();
  const auto heard = left();
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_EQ(heard[0].headers.bth.opcode, write_only);
  expect_acknowledged(heard);
  // That was all that was owed.
  scene.endpoint.flush();
  scene.turn(100);
  EXPECT_EQ(count_of(peer.hear(), acknowledge), 0u);
}

TEST_F(RoceLateAcknowledgements, LeaveWhenTheEndpointIsFlushedOrSleeps) {
  written();
  scene.endpoint.flush();
  expect_acknowledged(left());
  written();
  scene.endpoint.wait(1000);
  expect_acknowledged(left());
  written();
  scene.endpoint.begin_sleep();
  scene.endpoint.end_sleep();
  expect_acknowledged(left());
}

TEST_F(RoceLateAcknowledgements, LeaveAfterAMomentAnyway) {
  written();
  EXPECT_TRUE(left().empty());
  std::uint64_t waited_ns = 0;
  while (count_of(peer.hear(), acknowledge) == 0 && waited_ns < 1'000'000) {
    scene.endpoint.progress();
    scene.network.advance(1000);
    waited_ns += 1000;
  }
  EXPECT_GE(waited_ns, 5'000u);
  EXPECT_LE(waited_ns, 50'000u);
}

// A duplicate shows that the peer's timeout has expired.
TEST_F(RoceLateAcknowledgements, DuplicatesAreAcknowledgedAtOnce) {
  written();
  --peer.psn;
  written();
  expect_acknowledged(left());
}

TEST_F(RoceLateAcknowledgements, WhatIsRefusedIsRefusedAtOnce) {
  written();
  peer.send(request(write_only, peer.psn, {at(0), key() + 1, 8}), std::vector<std::byte>(8));
  scene.turn(2);
  const auto heard = peer.hear();
  ASSERT_FALSE(heard.empty());
  EXPECT_EQ(heard[0].headers.aeth.kind(), Aeth::Kind::nak);
  EXPECT_EQ(heard[0].headers.bth.psn, peer.psn);
  EXPECT_EQ(count_of(heard, acknowledge), heard.size());
  scene.endpoint.flush();
  scene.turn(2);
}

TEST_F(RoceLateAcknowledgements, APairThatIsDestroyedOwesNothing) {
  written();
  pair.reset();
  scene.endpoint.flush();
  scene.turn(40);
  EXPECT_EQ(count_of(peer.hear(), acknowledge), 0u);
}

TEST_F(RoceRules, AnAcknowledgementBehindAReadIsNotItsAnswer) {
  const auto pair = scene.to(peer);
  std::vector<std::byte> into(5000);
  const std::array requests{WorkRequest::read(1, into, 1, 4096), WorkRequest::send(2, into)};
  ASSERT_EQ(pair->post(requests).taken, 2u);
  scene.turn(3);
  peer.hear();
  peer.send(acknowledgement(peer.peer_psn + 3, Aeth::ack(2)));
  scene.turn(3);
  EXPECT_TRUE(scene.completions().empty());
  EXPECT_EQ(count_of(peer.hear(), read_request), 1u);  // it is asked for again
}

}  // namespace
}  // namespace espalier::fabric::roce
