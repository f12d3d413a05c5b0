// SPDX-License-Identifier: Apache-2.0
// Clients of a node that asks for proofs: with the right secret, and without it.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/testing/seeds.hpp"
#include "channel/rings/tests/testing/secret_checks.hpp"

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
  // Its first pair has not connected yet.
  EXPECT_EQ(scene.counts().sessions, 2u);
  EXPECT_TRUE(scene.wait([&] { return scene.counts().sessions == 1; }, 7000));
  EXPECT_EQ(scene.serve(), "");
}

TEST(LinkSecrets, WrongOnesAreRefusedAlike) { EXPECT_EQ(check_wrong_secrets(), ""); }
TEST(LinkSecrets, AProofIsGoodOnce) { EXPECT_EQ(check_proofs_said_again(), ""); }
TEST(LinkSecrets, NoChallengeComesTwice) { EXPECT_EQ(check_challenges_differ(), ""); }
TEST(LinkSecrets, AHelloIsGoodOnce) { EXPECT_EQ(check_hellos_said_again(), ""); }
TEST(LinkSecrets, AHelloIsGoodBeforeTheNext) { EXPECT_EQ(check_hellos_said_late(), ""); }

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
  // Nor has a client that knows the token of another's session: the node reveals no more about it.
  const auto stolen = scene.world.first_token();
  for (const auto way : {wire::LinkWay::send, wire::LinkWay::reads, wire::LinkWay::writes}) {
    wire::LinkProvenHello hello{link_hello(way, LinkWorld::kRings, stolen), 12345};
    hello.hello.reserved = 100;
    const auto link =
        scene.begin(std::string(base::bytes_of(hello)), {}, HostileScene::kMs * 10'000);
    ASSERT_TRUE(scene.wait([&] { return link->welcome() != nullptr; }, 5000));
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

// Messages in place of a proof: a part of one, more than one, another message, nothing.
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
    // Answers to wrong proofs are delayed more and more.
    const auto answer = scene.answer(*peer, 4500);
    EXPECT_TRUE(!answer || (answer->code != 0 && answer->token == wire::LinkToken{})) << bytes;
  }
  auto peer = scene.ask_challenge();
  ASSERT_TRUE(peer);
  const auto good = SecretScene::proof_of(*peer, "client", SecretScene::right_secret());
  // The node's own message is not a proof.
  peer->link->send(std::string(base::bytes_of(peer->challenge)), std::nullopt);
  peer->link->send(std::string(base::bytes_of(good)), std::nullopt);
  const auto answer = scene.answer(*peer, 4500);
  ASSERT_TRUE(answer);
  EXPECT_NE(answer->code, 0u) << "each pair takes one message";
  EXPECT_EQ(scene.counts().sessions, 1u);
  EXPECT_EQ(scene.serve(), "");
}

// One address sends more than may be pending of it; peers of other addresses are accepted as
// before.
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
  // Another client connects during the flood, and has its session immediately.
  scene.world.part();
  const std::uint64_t before = scene.world.world().now_ns();
  EXPECT_EQ(scene.world.connect(), "");
  EXPECT_LT(scene.world.world().now_ns() - before, 100'000'000u);
  EXPECT_EQ(scene.serve(), "");
  // Silent peers are gone within five seconds.
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
  // It may hold fewer now, and its right proof is still accepted, without delay.
  std::vector<SecretScene::Challenged> peers;
  while (auto peer = scene.ask_challenge()) peers.push_back(std::move(*peer));
  EXPECT_EQ(peers.size(), offload::PeerSources::kSuspectPendingMax);
  const auto proven =
      scene.prove(peers[0], SecretScene::proof_of(peers[0], "client", scene.right_secret()), 100);
  ASSERT_TRUE(proven);
  EXPECT_EQ(proven->code, 0u);
  EXPECT_EQ(scene.serve(), "") << "what one place did is nothing to another";
}

// Wrong signatures of hellos are delayed and counted, too.
TEST(LinkSecrets, WrongMarksCountAsWrongProofs) {
  SecretScene scene;
  auto session = scene.other_session();
  ASSERT_TRUE(session);
  const offload::AuthenticationCounts& counts = *scene.world.clients().authentication_counts();
  for (std::uint32_t i = 0; i < offload::PeerSources::kSuspect; ++i) {
    auto hello = session->sign(link_hello(wire::LinkWay::send, HostileScene::kRings));
    ASSERT_TRUE(hello);
    hello->mark ^= 1;
    const std::uint64_t begin = scene.world.world().now_ns();
    const auto link =
        scene.begin(std::string(base::bytes_of(*hello)), {}, HostileScene::kMs * 10'000);
    ASSERT_TRUE(scene.wait([&] { return link->welcome() != nullptr; }, 5000));
    EXPECT_EQ(link->welcome()->code, static_cast<std::uint32_t>(Code::not_permitted));
    EXPECT_EQ(link->welcome()->detail, 5u);
    EXPECT_GE(scene.world.world().now_ns() - begin, offload::PeerSources::kDelayNs << i);
    EXPECT_EQ(counts.wrong, i + 1);
  }
  // The address is suspect now, and its right signature is accepted all the same, without delay.
  const auto link = scene.dial_as(*session, wire::LinkWay::send);
  EXPECT_TRUE(link && link->accepted() && scene.answers(*link));
  std::vector<SecretScene::Challenged> peers;
  while (auto peer = scene.ask_challenge()) peers.push_back(std::move(*peer));
  EXPECT_EQ(peers.size(), offload::PeerSources::kSuspectPendingMax);
  EXPECT_EQ(scene.serve(), "");
}

// A client retries until the node has room for it, within its timeout.
TEST(LinkSecrets, AClientThatIsOneTooManyOfItsPlaceTriesAgain) {
  SecretScene scene;
  const auto place = scene.world.world().add_endpoint("c");  // where the client is, too
  std::vector<std::unique_ptr<HostileLink>> links;
  for (std::size_t i = 0; i < offload::PeerSources::kPendingMax; ++i) {
    links.push_back(std::make_unique<HostileLink>(
        *place, 100'000, HostileLink::Room{.receives = 2, .bytes_each = 128}));
    links.back()->dial("n", link_hello(wire::LinkWay::prove, HostileScene::kRings));
    scene.wait([&] { return links.back()->welcome() != nullptr; });
  }
  const offload::AuthenticationCounts& counts = *scene.world.clients().authentication_counts();
  ASSERT_EQ(counts.pending, offload::PeerSources::kPendingMax);
  scene.world.forget();
  scene.world.world().after(1'000'000'000, [&] { links.clear(); });
  EXPECT_EQ(scene.world.connect(), "");
  EXPECT_GT(counts.limited, 1u);
  EXPECT_EQ(scene.serve(), "");
}

/// Addresses that ask for challenges all the time, more than a node has room for, and prove
/// nothing.
class Flood {
 public:
  Flood(SecretScene& scene, std::size_t places) : scene_(scene) {
    for (std::size_t i = 0; i < places; ++i) {
      places_.push_back(scene.world.world().add_node("p" + std::to_string(i)));
    }
    go_on();
  }
  ~Flood() { *ended_ = true; }
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;

 private:
  static constexpr std::uint64_t kEachNs = 200'000;
  static constexpr std::size_t kLinksMax = 2 * LinkAuthenticator::kPendingMax;

  // It drops the oldest, which the node has evicted by then.
  void go_on() {
    for (const auto& place : places_) {
      links_.push_back(std::make_unique<HostileLink>(
          *place, 100'000, HostileLink::Room{.receives = 2, .bytes_each = 128}));
      links_.back()->dial("n", link_hello(wire::LinkWay::prove, HostileScene::kRings));
      if (links_.size() > kLinksMax) links_.pop_front();
    }
    scene_.world.world().after(kEachNs, [this, ended = ended_] {
      if (!*ended) go_on();
    });
  }

  SecretScene& scene_;
  std::vector<std::unique_ptr<fabric::Endpoint>> places_;
  std::deque<std::unique_ptr<HostileLink>> links_;
  std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);
};

TEST(LinkSecrets, AClientComesInWhileManyPlacesFlood) {
  for (const std::size_t places : {5, 8, 60}) {
    SCOPED_TRACE(places);
    SecretScene scene;
    const offload::AuthenticationCounts& counts = *scene.world.clients().authentication_counts();
    Flood flood(scene, places);
    ASSERT_TRUE(scene.wait([&] { return counts.pending == LinkAuthenticator::kPendingMax; }, 1000));
    scene.world.part();
    for (int i = 0; i < 3; ++i) {
      const std::uint64_t before = scene.world.world().now_ns();
      ASSERT_EQ(scene.world.connect(), "");
      EXPECT_LT(scene.world.world().now_ns() - before, 100'000'000u);
      EXPECT_LE(counts.pending, LinkAuthenticator::kPendingMax);
      EXPECT_GT(counts.pending, LinkAuthenticator::kPendingMax / 2);
      EXPECT_EQ(scene.serve(), "");
      scene.world.part();
    }
    EXPECT_GT(counts.limited, 0u);
    EXPECT_EQ(counts.wrong, 0u);
  }
}

TEST(LinkSecrets, OfNamesThatAreTakenOutEnd) {
  SecretScene scene;
  ASSERT_EQ(scene.serve(), "");
  ASSERT_TRUE(scene.world.write_secrets(std::string("other read ") + LinkWorld::kOtherSecret));
  EXPECT_TRUE(scene.wait([&] { return scene.counts().sessions == 0; }, 1000));
  EXPECT_FALSE(scene.world.write_secrets("other read abc")) << "what is wrong changes nothing";
}

// Sessions of removed names end even if their pair has failed, whether that was detected or not.
TEST(LinkSecrets, OfNamesThatAreTakenOutEndWithoutAPairToo) {
  SecretScene scene;
  std::vector<std::unique_ptr<HostileLink>> links;
  for (int i = 0; i < 2; ++i) {
    auto session = scene.other_session();
    ASSERT_TRUE(session);
    links.push_back(scene.dial_as(*session, wire::LinkWay::send));
    ASSERT_TRUE(links.back() && links.back()->accepted() && scene.answers(*links.back()));
  }
  links.pop_back();
  ASSERT_TRUE(scene.wait([&] { return scene.counts().lost == 1; }));
  links.pop_back();  // the node gets the close, and checks its sessions later
  scene.world.world().run_for(200'000);
  ASSERT_EQ(scene.counts().lost, 1u);
  ASSERT_TRUE(scene.world.write_secrets(LinkWorld::kSecretLine));
  EXPECT_TRUE(scene.wait([&] { return scene.counts().sessions == 1; }, 100));
  EXPECT_EQ(scene.serve(), "");
}

TEST(LinkSecrets, OfNamesThatHaveAnotherSecretEnd) {
  SecretScene scene;
  auto session = scene.other_session();
  ASSERT_TRUE(session);
  const auto link = scene.dial_as(*session, wire::LinkWay::send);
  ASSERT_TRUE(link && link->accepted() && scene.answers(*link));
  std::string changed = LinkWorld::kOtherSecret;
  changed.front() = '0';
  ASSERT_TRUE(
      scene.world.write_secrets(std::string(LinkWorld::kSecretLine) + "\nother read " + changed));
  EXPECT_TRUE(scene.wait([&] { return scene.counts().sessions == 1; }, 100));
  EXPECT_EQ(scene.serve(), "") << "that of the other name is as before";
}

// The audit log has each refused peer with its reason, and each ended session.
TEST(LinkSecrets, RefusedHellosAndEndedSessionsAreInTheAuditLog) {
  SecretScene scene;
  offload::AuditLog& audit = scene.world.node().services().audit;
  audit.open();
  auto session = scene.other_session();
  ASSERT_TRUE(session);
  const auto link = scene.dial_as(*session, wire::LinkWay::send);
  ASSERT_TRUE(link && link->accepted() && scene.answers(*link));
  wire::LinkHello hello = link_hello(wire::LinkWay::send, HostileScene::kRings);
  ++hello.protocol;
  static_cast<void>(scene.dial(std::string(base::bytes_of(hello))));
  --hello.protocol;
  ++hello.magic;
  static_cast<void>(scene.dial(std::string(base::bytes_of(hello))));
  session->token[0] ^= 1;
  static_cast<void>(scene.dial_as(*session, wire::LinkWay::send));
  for (const Code code : {Code::unsupported, Code::invalid_argument, Code::not_found}) {
    const auto record = audit.take();
    ASSERT_TRUE(record);
    EXPECT_TRUE(record->refusal);
    EXPECT_EQ(record->act, "connect");
    EXPECT_EQ(record->outcome.code, code);
    EXPECT_EQ(record->address, "sim h");
  }
  EXPECT_FALSE(audit.take());
  ASSERT_TRUE(scene.world.write_secrets(LinkWorld::kSecretLine));
  ASSERT_TRUE(scene.wait([&] { return scene.counts().sessions == 1; }, 100));
  const auto record = audit.take();
  ASSERT_TRUE(record);
  EXPECT_FALSE(record->refusal);
  EXPECT_EQ(record->act, "end_session");
  EXPECT_EQ(record->name, "other");
  EXPECT_EQ(record->role, offload::Right::read);
  EXPECT_EQ(record->address, "sim h");
  EXPECT_EQ(record->outcome, Error{});
  EXPECT_FALSE(audit.take());
}

TEST(LinkSecrets, NobodyComesBackToASessionOfAnotherRole) {
  SecretScene scene;
  auto session = scene.other_session();
  ASSERT_TRUE(session);
  auto link = scene.dial_as(*session, wire::LinkWay::send);
  ASSERT_TRUE(link && link->accepted() && scene.answers(*link));
  link.reset();
  ASSERT_TRUE(scene.wait([&] { return scene.counts().lost == 1; }));
  ASSERT_TRUE(scene.world.write_secrets(std::string(LinkWorld::kSecretLine) + "\nother write " +
                                        LinkWorld::kOtherSecret));
  const auto back = scene.dial_as(*session, wire::LinkWay::send);  // before the node checks again
  ASSERT_TRUE(back && back->welcome() != nullptr);
  EXPECT_EQ(back->welcome()->code, static_cast<std::uint32_t>(Code::not_found));
  EXPECT_EQ(scene.counts().resumed, 0u);
  EXPECT_TRUE(scene.wait([&] { return scene.counts().sessions == 1; }));
  EXPECT_EQ(scene.serve(), "");
}

TEST(LinkSecrets, ANodeThatKnowsNoneIsNotBelieved) {
  LinkWorldOptions options = HostileScene::calm();
  options.client_has_secret = true;  // of a node without authentication
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

// As in fabric_seeds_test: no request is lost or run twice, though each new pair needs a proof.
TEST(LinkSecretSeeds, EverythingIsDoneOnceWhateverBecomesOfThePairs) {
  const std::uint64_t first = base::seed_from_environment(2000);
  LinkReached reached;
  LinkWorldOptions options;
  options.secrets = true;
  const auto all_happened = [&] { return reached.resumed != 0 && reached.node_resumed != 0; };
  for (base::Seeds seeds(40); seeds.more(all_happened()); seeds.done()) {
    const std::uint64_t seed = first + seeds.ended();
    LinkWorld world(seed, options);
    ASSERT_EQ(world.run(reached), "") << "seed " << seed;
    ASSERT_EQ(world.node().audit(), std::vector<std::string>{}) << "seed " << seed;
  }
  EXPECT_GT(reached.resumed, 0u);
  EXPECT_GT(reached.node_resumed, 0u);
}

}  // namespace
}  // namespace espalier::client
