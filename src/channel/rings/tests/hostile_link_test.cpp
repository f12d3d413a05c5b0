// SPDX-License-Identifier: Apache-2.0
// Peers that violate the protocol in one way each, at a node over a fabric: the consequences for
// them, and that there are none for other clients (hostile_checks.hpp).
#include <gtest/gtest.h>

#include "channel/rings/tests/testing/hostile_checks.hpp"

namespace espalier::client {
namespace {

class LinkBreach : public ::testing::TestWithParam<Breach> {};

TEST_P(LinkBreach, EndsNobodyButWhoCommitsIt) { EXPECT_EQ(check_breach(GetParam()), ""); }
TEST_P(LinkBreach, OfAnAuthenticatedClientEndsNobodyElse) {
  EXPECT_EQ(check_breach(GetParam(), true), "");
}

std::string name_of(const ::testing::TestParamInfo<Breach>& breach) { return breach.param.name; }
INSTANTIATE_TEST_SUITE_P(Notes, LinkBreach, ::testing::ValuesIn(breaches_of_notes()), name_of);
INSTANTIATE_TEST_SUITE_P(Memory, LinkBreach, ::testing::ValuesIn(breaches_of_memory()), name_of);

/// At a node with secrets, and at a node without.
class HostileLinks : public ::testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] static LinkWorldOptions options() {
    LinkWorldOptions options = HostileScene::calm();
    options.secrets = GetParam();
    return options;
  }
};
class HostileLinksSlow : public HostileLinks {};
std::string secrets_name(const ::testing::TestParamInfo<bool>& secrets) {
  return secrets.param ? "known" : "none";
}
INSTANTIATE_TEST_SUITE_P(Secrets, HostileLinks, ::testing::Bool(), secrets_name);
INSTANTIATE_TEST_SUITE_P(Secrets, HostileLinksSlow, ::testing::Bool(), secrets_name);

TEST_P(HostileLinks, NobodyReachesTheMemoryOfAnotherSession) {
  EXPECT_EQ(check_memory_of_others(options()), "");
}

TEST_P(HostileLinks, ANameWithTheWrongRingsIsRefusedAndHarmsNobody) {
  EXPECT_EQ(check_stolen_names(options()), "");
}

TEST_P(HostileLinks, WhoTakesNothingLeavesOthersTheirPosts) {
  EXPECT_EQ(check_posts_for_others(options()), "");
}

TEST_P(HostileLinksSlow, ARejectedClientHandsBackTheReceivesThatItTook) {
  EXPECT_EQ(check_receives_for_others(options()), "");
}

TEST(HostileReceivesSlow, WhoLeavesMessagesUnfinishedLeavesReceivesToOthers) {
  EXPECT_EQ(check_unfinished_messages(), "");
}

// --- hellos --------------------------------------------------------------------------------------

struct BadHello {
  std::string bytes;
  Code code;
  std::uint32_t detail = 0;
  bool is_a_hello = false;  // of this protocol
};
constexpr std::uint32_t kWantsASecret = 4;  // of not_permitted

std::vector<BadHello> bad_hellos() {
  const wire::LinkHello good = link_hello(wire::LinkWay::send, HostileScene::kRings);
  const auto bytes = [](const wire::LinkHello& hello) {
    return std::string(base::bytes_of(hello));
  };
  std::vector<BadHello> hellos{{"", Code::invalid_argument},
                               {bytes(good).substr(1), Code::invalid_argument},
                               {std::string(56, 'x'), Code::invalid_argument}};
  wire::LinkHello bad = good;
  bad.magic ^= 1;
  hellos.push_back({bytes(bad), Code::invalid_argument});
  bad = good;
  bad.protocol = 2;
  hellos.push_back({bytes(bad), Code::unsupported, wire::kLinkProtocol});
  for (const int way : {0, 3, 255}) {
    bad = good;
    bad.way = static_cast<std::uint8_t>(way);
    hellos.push_back({bytes(bad), Code::unsupported, 0, true});
  }
  bad = good;
  bad.token = {1, 2};
  hellos.push_back({bytes(bad), Code::not_found, 0, true});
  return hellos;
}

TEST_P(HostileLinks, ABadHelloIsAnsweredWithAReason) {
  HostileScene scene(options());
  for (const BadHello& bad : bad_hellos()) {
    const auto link = scene.dial(bad.bytes);
    ASSERT_NE(link->welcome(), nullptr);
    EXPECT_EQ(link->welcome()->magic, wire::kLinkMagic);
    // A hello without a proof is refused before anything else is checked.
    const bool is_asked = GetParam() && bad.is_a_hello;
    EXPECT_EQ(static_cast<Code>(link->welcome()->code), is_asked ? Code::not_permitted : bad.code);
    EXPECT_EQ(link->welcome()->detail, is_asked ? kWantsASecret : bad.detail);
    // It was given no memory, and what it sends all the same is ignored.
    EXPECT_EQ(link->welcome()->key, 0u);
    link->send(std::string(64, 'x'), link_note(wire::LinkNoteKind::slots, 0, 1));
    link->close();
    EXPECT_EQ(scene.serve(), "");
  }
  EXPECT_EQ(scene.counts().sessions, 1u);
  EXPECT_EQ(scene.counts().refused, bad_hellos().size());
  EXPECT_EQ(scene.counts().broken, 0u);
  EXPECT_EQ(scene.world.admitted(), 1);
}

TEST_P(HostileLinks, RingsOfAllSizesAreMadePossible) {
  HostileScene scene(options());
  for (const int slots : {0, 5, 6, 12, 13, 31, 32, 64, 255}) {
    for (const int rings : {0, 1, 16, 17, 255}) {
      wire::LinkHello hello = link_hello(wire::LinkWay::send, HostileScene::kRings);
      hello.request_slots_log2 = static_cast<std::uint8_t>(slots);
      hello.response_slots_log2 = static_cast<std::uint8_t>(255 - slots);
      hello.response_rings = static_cast<std::uint8_t>(rings);
      hello.reserved = 7;
      if (GetParam()) {
        hello.way = static_cast<std::uint8_t>(wire::LinkWay::prove);
        ASSERT_TRUE(scene.ask_challenge(hello)) << slots << " " << rings;
        continue;
      }
      const auto link = scene.dial(std::string(base::bytes_of(hello)) + "and more");
      ASSERT_TRUE(link->accepted()) << slots << " " << rings;
      EXPECT_TRUE(link->layout().valid());
      EXPECT_TRUE(scene.answers(*link));
    }
  }
  EXPECT_EQ(scene.serve(), "");
}

// --- comings and goings --------------------------------------------------------------------------

TEST_P(HostileLinks, WhoKnowsANameHasTheSessionUnlessThereAreSecrets) {
  HostileScene scene(options());
  ASSERT_EQ(scene.serve(), "");
  const auto thief =
      scene.dial(link_hello(wire::LinkWay::send, LinkWorld::kRings, scene.world.first_token()));
  if (GetParam()) {
    ASSERT_NE(thief->welcome(), nullptr);
    EXPECT_EQ(static_cast<Code>(thief->welcome()->code), Code::not_permitted);
    EXPECT_EQ(scene.counts().resumed, 0u);
    EXPECT_EQ(scene.serve(), "");
    return;
  }
  ASSERT_TRUE(thief->accepted());
  EXPECT_EQ(scene.counts().resumed, 1u);
  thief->close();
  EXPECT_TRUE(scene.wait([&] { return scene.counts().sessions == 0; }));
  LinkReached reached;
  EXPECT_EQ(scene.world.work(20, reached), "lost");
}

// Refusals themselves are bounded: where a connection must be made to send one, the oldest is
// evicted.
TEST_P(HostileLinks, MoreThanMayBeAreToldSo) {
  LinkWorldOptions few = options();
  few.sessions_max = 5;
  HostileScene scene(few);
  const wire::LinkHello hello = link_hello(wire::LinkWay::send, HostileScene::kRings);
  std::vector<std::unique_ptr<HostileLink>> links;
  for (int i = 0; i < 4; ++i) {
    links.push_back(scene.dial_session(hello));
    EXPECT_TRUE(links.back()->accepted());
  }
  for (int i = 0; i < 80; ++i) {
    links.push_back(scene.dial(hello));
    const wire::LinkWelcome* const welcome = links.back()->welcome();
    ASSERT_NE(welcome, nullptr) << i;
    EXPECT_EQ(static_cast<Code>(welcome->code),
              GetParam() ? Code::not_permitted : Code::too_many_participants);
  }
  EXPECT_EQ(scene.world.admitted(), 5);
  EXPECT_EQ(scene.serve(), "");
  // They stay for at most a second, and then there is room for others.
  scene.wait([] { return false; }, 1'100);
  EXPECT_TRUE(links[10]->ended());
  EXPECT_NE(scene.dial(hello)->welcome(), nullptr);
  links[0]->close();
  EXPECT_TRUE(scene.wait([&] { return scene.world.admitted() == 4; }));
  EXPECT_TRUE(scene.dial_session(hello)->accepted());
  EXPECT_EQ(scene.serve(), "");
}

TEST_P(HostileLinks, AClientThatEndsAtOnceIsNotKept) {
  HostileScene scene(options());
  const wire::LinkWay way = GetParam() ? wire::LinkWay::prove : wire::LinkWay::send;
  const wire::LinkHello hello = link_hello(way, HostileScene::kRings);
  for (int i = 0; i < 500; ++i) {
    const auto link = scene.begin(hello, {}, 100'000);
    scene.world.world().run_for(static_cast<std::uint64_t>(i % 50) * 200);
  }
  EXPECT_EQ(scene.serve(), "");
  // Some knew their tokens, so their sessions were kept for a resumption.
  EXPECT_TRUE(scene.wait([&] { return scene.counts().sessions == 1; }, 2'200));
  EXPECT_EQ(scene.world.admitted(), 1);
}

TEST_P(HostileLinks, WhatFollowsACloseIsIgnored) {
  HostileScene scene(options());
  for (const wire::LinkWay way : {wire::LinkWay::write, wire::LinkWay::send}) {
    const auto link = scene.dial_session(link_hello(way, HostileScene::kRings));
    ASSERT_TRUE(link->accepted());
    link->close();
    for (int i = 0; i < 20; ++i) {
      link->request(rings::message_of(rings::request_of(wire::OffloadId::noop)));
      link->close();
    }
    EXPECT_TRUE(scene.wait([&] { return link->ended() && scene.counts().sessions == 1; }));
  }
  EXPECT_EQ(scene.counts().broken, 0u);
  EXPECT_EQ(scene.serve(), "");
}

}  // namespace
}  // namespace espalier::client
