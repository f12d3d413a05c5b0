// SPDX-License-Identifier: Apache-2.0
// Clients of a node that asks for proofs: those who know a secret, and those who do not.
#include <gtest/gtest.h>

#include "client/testing/secret_checks.hpp"
#include "fabric/testing/seeds.hpp"

namespace espalier::client {
namespace {

using offload::LinkAuthenticator;

TEST(LinkSecrets, AreProvenBeforeThereIsASession) {
  SecretScene scene;
  ASSERT_EQ(scene.serve(), "");
  EXPECT_EQ(scene.counts().sessions, 1u);
  EXPECT_EQ(scene.counts().resumed, 0u);
  EXPECT_EQ(scene.world.clients().authentication_counts()->accepted, 1u);
  EXPECT_EQ(scene.world.clients().authentication_counts()->wrong, 0u);
}

TEST(LinkSecrets, GiveTheRoleThatTheNodeHasForThem) {
  SecretScene scene;
  auto peer = scene.ask_challenge();
  ASSERT_TRUE(peer);
  crypto::SecretBytes other{};
  const auto line =
      crypto::parse_credential(std::string("other read ") + LinkWorld::kOtherSecret, other);
  ASSERT_TRUE(line && *line);
  const wire::LinkProof proof = SecretScene::proof_of(*peer, "other", other);
  const auto proven = scene.prove(*peer, proof);
  ASSERT_TRUE(proven);
  ASSERT_EQ(proven->code, 0u);
  EXPECT_EQ(proven->digest, crypto::node_digest(other, peer->challenge, proof, *proven).value());
  // Its first pair has to come.
  EXPECT_EQ(scene.counts().sessions, 2u);
  EXPECT_TRUE(scene.wait([&] { return scene.counts().sessions == 1; }, 7000));
  EXPECT_EQ(scene.serve(), "");
}

TEST(LinkSecrets, WrongOnesAreRefusedAlike) { EXPECT_EQ(check_wrong_secrets(), ""); }
TEST(LinkSecrets, AProofIsGoodOnce) { EXPECT_EQ(check_proofs_said_again(), ""); }
TEST(LinkSecrets, NoChallengeComesTwice) { EXPECT_EQ(check_challenges_differ(), ""); }
TEST(LinkSecrets, AHelloIsGoodOnce) { EXPECT_EQ(check_hellos_said_again(), ""); }

TEST(LinkSecrets, AreNotToldToRogueNodes) { EXPECT_EQ(check_rogue_nodes(), ""); }

TEST(LinkSecrets, WhoProvesNothingHasNothing) {
  SecretScene scene;
  for (const auto way :
       {wire::LinkWay::write, wire::LinkWay::send, wire::LinkWay::reads, wire::LinkWay::writes}) {
    const auto link = scene.dial(link_hello(way, HostileScene::kRings));
    ASSERT_NE(link->welcome(), nullptr);
    EXPECT_EQ(link->welcome()->code, static_cast<std::uint32_t>(Code::not_permitted));
    EXPECT_EQ(link->welcome()->detail, 4u);
    EXPECT_EQ(link->welcome()->key, 0u);
  }
  // Nor has who knows the name of another's session: the node says no more of it than that.
  const auto stolen = scene.world.first_token();
  for (const auto way : {wire::LinkWay::send, wire::LinkWay::reads, wire::LinkWay::writes}) {
    wire::LinkProvenHello hello{link_hello(way, LinkWorld::kRings, stolen), 12345};
    hello.hello.reserved = 100;
    const auto link = scene.dial(std::string(base::bytes_of(hello)));
    ASSERT_NE(link->welcome(), nullptr);
    EXPECT_NE(link->welcome()->code, 0u);
  }
  EXPECT_EQ(scene.counts().sessions, 1u);
  EXPECT_EQ(scene.serve(), "");
}

TEST(LinkSecrets, APeerThatSendsNoProofIsGoneInTime) {
  SecretScene scene;
  std::vector<SecretScene::Challenged> peers;
  for (int i = 0; i < 8; ++i) {
    auto peer = scene.ask_challenge();
    ASSERT_TRUE(peer);
    peers.push_back(std::move(*peer));
  }
  EXPECT_TRUE(scene.wait(
      [&] { return scene.world.clients().authentication_counts()->timed_out == 8; }, 6000));
  EXPECT_TRUE(scene.wait([&] { return peers.front().link->ended(); }));
  EXPECT_EQ(scene.counts().sessions, 1u);
  EXPECT_EQ(scene.serve(), "");
}

// Whatever comes in place of a proof: a part of one, more than one, another's message, nothing.
TEST(LinkSecrets, NonsenseIsRefused) {
  SecretScene scene;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, sizeof(wire::LinkProof) - 1,
                                  sizeof(wire::LinkProof) + 1, std::size_t{4000}}) {
    auto peer = scene.ask_challenge();
    ASSERT_TRUE(peer);
    std::string said(
        base::bytes_of(SecretScene::proof_of(*peer, "client", SecretScene::right_secret())));
    said.resize(bytes, 'x');
    peer->link->send(said, std::nullopt);
    // Wrong proofs are answered ever later.
    const auto answer = scene.answer(*peer, 4500);
    EXPECT_TRUE(!answer || (answer->code != 0 && answer->token == wire::LinkToken{})) << bytes;
  }
  auto peer = scene.ask_challenge();
  ASSERT_TRUE(peer);
  const auto good = SecretScene::proof_of(*peer, "client", SecretScene::right_secret());
  // What the node says itself is no proof.
  peer->link->send(std::string(base::bytes_of(peer->challenge)), std::nullopt);
  peer->link->send(std::string(base::bytes_of(good)), std::nullopt);
  const auto answer = scene.answer(*peer, 4500);
  ASSERT_TRUE(answer);
  EXPECT_NE(answer->code, 0u) << "each pair takes one message";
  EXPECT_EQ(scene.counts().sessions, 1u);
  EXPECT_EQ(scene.serve(), "");
}

// From one place come more than may be pending of it; those of others come as before.
TEST(LinkSecrets, OnePlaceHoldsABoundedPartOfThePendingPeers) {
  SecretScene scene;
  const offload::AuthenticationCounts& counts = *scene.world.clients().authentication_counts();
  std::vector<std::unique_ptr<HostileLink>> links;
  std::size_t pending = 0;
  for (std::size_t i = 0; i < LinkAuthenticator::kPendingMax + 20; ++i) {
    links.push_back(scene.dial(link_hello(wire::LinkWay::prove, HostileScene::kRings),
                               {.receives = 2, .bytes_each = 128}));
    pending += links.back()->accepted_pending() ? 1 : 0;
  }
  EXPECT_EQ(pending, offload::PeerSources::kPendingMax);
  EXPECT_LE(4 * offload::PeerSources::kPendingMax, LinkAuthenticator::kPendingMax);
  EXPECT_EQ(counts.pending, pending);
  EXPECT_EQ(counts.limited, links.size() - pending);
  EXPECT_EQ(scene.serve(), "");
  // Another client comes during the flood, and has its session at once.
  scene.world.part();
  const std::uint64_t before = scene.world.world().now_ns();
  EXPECT_EQ(scene.world.connect(), "");
  EXPECT_LT(scene.world.world().now_ns() - before, 100'000'000u);
  EXPECT_EQ(scene.serve(), "");
  // And those that say nothing are gone in five seconds.
  EXPECT_TRUE(scene.wait([&] { return counts.pending == 0; }, 5100));
  EXPECT_EQ(counts.timed_out, pending);
  EXPECT_TRUE(scene.ask_challenge());
}

TEST(LinkSecrets, WrongProofsOfOnePlaceAreAnsweredEverLater) {
  SecretScene scene;
  crypto::SecretBytes wrong = scene.right_secret();
  wrong[0] ^= std::byte{1};
  std::uint64_t before = 0;
  for (int i = 0; i < 4; ++i) {
    auto peer = scene.ask_challenge();
    ASSERT_TRUE(peer);
    const std::uint64_t begin = scene.world.world().now_ns();
    ASSERT_TRUE(refused(scene.prove(*peer, SecretScene::proof_of(*peer, "client", wrong), 4500)));
    const std::uint64_t took = scene.world.world().now_ns() - begin;
    EXPECT_GE(took, offload::PeerSources::kDelayNs << i);
    EXPECT_GT(took, before + before / 2);
    before = took;
  }
  EXPECT_EQ(scene.world.clients().authentication_counts()->wrong, 4u);
  // It holds fewer now, and a right proof of it is still taken, at once.
  std::vector<SecretScene::Challenged> peers;
  while (auto peer = scene.ask_challenge()) peers.push_back(std::move(*peer));
  EXPECT_EQ(peers.size(), offload::PeerSources::kSuspectPendingMax);
  const auto proven =
      scene.prove(peers[0], SecretScene::proof_of(peers[0], "client", scene.right_secret()), 100);
  ASSERT_TRUE(proven);
  EXPECT_EQ(proven->code, 0u);
  EXPECT_EQ(scene.serve(), "") << "what one place did is nothing to another";
}

// A client waits until the node has room for it, as long as it waits for anything.
TEST(LinkSecrets, AClientThatIsOneTooManyTriesAgain) {
  SecretScene scene;
  std::vector<std::unique_ptr<fabric::Endpoint>> places;
  std::vector<std::unique_ptr<HostileLink>> links;
  for (std::size_t i = 0; i < LinkAuthenticator::kPendingMax; ++i) {
    if (i % 32 == 0) places.push_back(scene.world.world().add_node("p" + std::to_string(i)));
    links.push_back(std::make_unique<HostileLink>(
        *places.back(), 100'000, HostileLink::Room{.receives = 2, .bytes_each = 128}));
    links.back()->dial("n", link_hello(wire::LinkWay::prove, HostileScene::kRings));
    scene.wait([&] { return links.back()->welcome() != nullptr; });
  }
  const offload::AuthenticationCounts& counts = *scene.world.clients().authentication_counts();
  ASSERT_EQ(counts.pending, LinkAuthenticator::kPendingMax);
  scene.world.forget();
  scene.world.world().after(1'000'000'000, [&] { links.clear(); });
  EXPECT_EQ(scene.world.connect(), "");
  EXPECT_GT(counts.limited, 1u);
  EXPECT_EQ(scene.serve(), "");
}

TEST(LinkSecrets, OfNamesThatAreTakenOutEnd) {
  SecretScene scene;
  ASSERT_EQ(scene.serve(), "");
  ASSERT_TRUE(scene.world.write_secrets(std::string("other read ") + LinkWorld::kOtherSecret));
  EXPECT_TRUE(scene.wait([&] { return scene.counts().sessions == 0; }, 1000));
  EXPECT_FALSE(scene.world.write_secrets("other read abc")) << "what is wrong changes nothing";
}

TEST(LinkSecrets, ANodeThatKnowsNoneIsNotBelieved) {
  LinkWorldOptions options = HostileScene::calm();
  options.client_has_secret = true;  // of a node that asks nobody
  LinkWorld world(3, options);
  EXPECT_EQ(world.connect(), "cannot connect: " + message({Code::not_permitted, 0, 6}));
}

TEST(LinkSecrets, WhoHasNoneIsToldSo) {
  LinkWorldOptions options = HostileScene::calm();
  options.secrets = true;
  options.client_has_secret = false;
  LinkWorld world(3, options);
  EXPECT_EQ(world.connect(), "cannot connect: " + message({Code::not_permitted, 0, 4}));
}

// As fabric_seeds_test has it: whatever becomes of the pairs, each of which is asked for anew.
TEST(LinkSecretSeeds, EverythingIsDoneOnceWhateverBecomesOfThePairs) {
  const std::uint64_t first = base::seed_from_environment(2000);
  LinkReached reached;
  LinkWorldOptions options;
  options.secrets = true;
  const fabric::Seeds seeds(40);
  for (std::uint64_t i = 0; i < seeds.count(); ++i) {
    LinkWorld world(first + i, options);
    ASSERT_EQ(world.run(reached), "") << "seed " << first + i;
    ASSERT_EQ(world.node().audit(), std::vector<std::string>{}) << "seed " << first + i;
  }
  if (!seeds.enough()) return;
  EXPECT_GT(reached.resumed, 0u);
  EXPECT_GT(reached.node_resumed, 0u);
}

}  // namespace
}  // namespace espalier::client
