// SPDX-License-Identifier: Apache-2.0
// What an endpoint does for peers that may not be where they say, and how real ones come in.
#include <gtest/gtest.h>

#include "fabric/roce/testing/connection_checks.hpp"

namespace espalier::fabric::roce {
namespace {

std::uint64_t asked_seed() { return base::seed_from_environment(73); }

TEST(RoceUnprovenPeers, OnlyItsCookieBringsARequestIn) {
  EXPECT_EQ(only_its_cookie_brings_a_request_in(asked_seed()), "");
}

TEST(RoceUnprovenPeers, ACookieIsGoodForATime) {
  EXPECT_EQ(a_cookie_is_good_for_a_time(asked_seed()), "");
}

TEST(RoceUnprovenPeers, GetLittle) { EXPECT_EQ(an_unproven_peer_gets_little(asked_seed()), ""); }

TEST(RoceUnprovenPeers, WaitForThePairsThatAreThere) {
  EXPECT_EQ(pairs_are_served_first(asked_seed()), "");
}

/// An endpoint that asks for a connection, over a network like any.
struct Asking {
  explicit Asking(AskedScene& scene, std::uint8_t last = 5)
      : all(scene),
        address(HandScene::address(last)),
        endpoint(scene.scene.network.open(address), *RegionTable::create(scene.random()),
                 NumberSource::of_seed(scene.random())),
        queue(endpoint, 64) {
    QueuePairOptions options;
    options.sends = &queue;
    pair = *endpoint.connect(to_text(HandScene::address()) + "/7", options, {});
  }
  /// Until the pair is connected, or ends, both sides work; the other one accepts, or refuses.
  void meet(bool accepts = true, std::span<const std::byte> reason = {}) {
    for (int i = 0; i < 100'000 && pair->state() == QueuePair::State::connecting; ++i) {
      all.scene.turn();
      endpoint.progress();
      const auto request = all.scene.endpoint.next_request();
      if (!request || request->peer != to_text(address)) continue;
      if (!accepts) {
        all.scene.endpoint.reject(*request, reason);
      } else if (!far) {
        far = *all.scene.endpoint.accept(*request, all.scene.options(), {});
      }
    }
  }
  AskedScene& all;
  PortAddress address;
  RoceEndpoint endpoint;
  CompletionQueue queue;
  std::unique_ptr<QueuePair> pair;
  std::unique_ptr<QueuePair> far;
};

TEST(RoceUnprovenPeers, WhoAsksBringsTheCookieByItself) {
  AskedScene s(asked_seed());
  s.scene.network.faults.loss = 0.2;
  s.fill(4 * Connector::kUnprovenMax);
  Asking asking(s);
  asking.meet();
  EXPECT_EQ(asking.pair->state(), QueuePair::State::connected);
  EXPECT_GE(s.counters().cookies_sent, 1u);
  EXPECT_EQ(s.counters().cookies_accepted, 1u);
}

TEST(RoceUnprovenPeers, WhoIsRefusedIsToldWhyHoweverMuchIsLost) {
  AskedScene s(asked_seed());
  s.scene.network.faults.loss = 0.2;
  const std::vector<std::byte> reason(64, std::byte{'w'});
  for (std::uint8_t i = 0; i < 100; ++i) {
    Asking asking(s, static_cast<std::uint8_t>(5 + i));
    asking.meet(false, reason);
    ASSERT_EQ(asking.pair->ended_by(), Status::remote_operation);
    ASSERT_GE(asking.pair->peer_data().size(), reason.size());
    ASSERT_TRUE(std::ranges::equal(asking.pair->peer_data().first(reason.size()), reason));
  }
}

TEST(RoceUnprovenPeers, WhoWasRefusedIsForgottenSoon) {
  AskedScene s(asked_seed());
  s.fill(10);
  for (const ConnectRequest& request : s.waiting) s.scene.endpoint.reject(request);
  s.rest(Connector::kRefusedNs / 2);
  EXPECT_EQ(s.scene.endpoint.unproven(), 10u);
  s.rest(Connector::kRefusedNs);
  EXPECT_EQ(s.scene.endpoint.unproven(), 0u);
  EXPECT_EQ(s.scene.endpoint.connections(), 0u);
}

// The REP is said three times at most, so the other side says again that it has heard it.
TEST(RoceUnprovenPeers, WhoSaysNothingElseIsConnectedThoughMuchIsLost) {
  for (std::uint64_t seed = asked_seed(), round = 0; round < 100; ++seed, ++round) {
    AskedScene s(seed);
    s.scene.network.faults.loss = 0.2;
    Asking asking(s);
    asking.meet();
    s.scene.network.faults.loss = 0.2;
    for (int i = 0; i < 2000; ++i) {
      s.scene.network.advance(1'000'000);
      s.scene.endpoint.progress();
      asking.endpoint.progress();
    }
    ASSERT_EQ(asking.pair->state(), QueuePair::State::connected) << round;
    ASSERT_EQ(asking.far->state(), QueuePair::State::connected) << round;
    ASSERT_EQ(s.scene.endpoint.unproven(), 0u);
  }
}

TEST(RoceUnprovenPeers, AnotherCookieForARequestThatWasSaidBeforeIsNothing) {
  AskedScene s(asked_seed());
  HandPeer peer(s.scene.network, HandScene::address(1), HandScene::address());
  const auto pair = s.scene.to(peer, false);
  const ConnectionMessage asked = peer.messages.back();
  RejectMessage reject;
  reject.ids = {0, std::get<RequestMessage>(asked.body).ids.local};
  set_cookie(reject, 77);
  const auto requests = [&] {
    s.scene.turn(3);
    const std::size_t before = peer.messages.size();
    peer.hear();
    return peer.messages.size() - before;
  };
  peer.say({asked.transaction ^ 1, reject});
  EXPECT_EQ(requests(), 0u);
  peer.say({asked.transaction, reject});
  EXPECT_EQ(requests(), 1u);
  const RequestMessage& again = *peer.last<RequestMessage>();
  EXPECT_EQ(cookie_of(again), 77u);
  EXPECT_EQ(again.local_pair, std::get<RequestMessage>(asked.body).local_pair);
  // Said twice on the way, it is of a request that is over.
  peer.say({asked.transaction, reject});
  EXPECT_EQ(requests(), 0u);
  // Nor does the endpoint go on for ever.
  for (int i = 0; i < 100; ++i) {
    peer.say({peer.messages.back().transaction, reject});
    requests();
  }
  EXPECT_LT(peer.messages.size(), 20u);
  EXPECT_EQ(pair->state(), QueuePair::State::connecting);
}

}  // namespace
}  // namespace espalier::fabric::roce
