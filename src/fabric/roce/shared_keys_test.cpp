// SPDX-License-Identifier: Apache-2.0
// Keys that the sessions of a map share: which sessions may read by them, and what they get.
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "fabric/roce/testing/shared_key_checks.hpp"

namespace espalier::fabric::roce {
namespace {

std::uint64_t shared_seed() { return base::seed_from_environment(71); }

TEST(SharedKeys, OneOfTwoSessionsIsFenced) { EXPECT_EQ(one_of_two_is_fenced(shared_seed()), ""); }

TEST(SharedKeys, DuplicatesCarryOtherAddresses) {
  EXPECT_EQ(duplicates_carry_other_addresses(shared_seed()), "");
}

TEST(SharedKeys, OnePacketAnswers) { EXPECT_EQ(one_packet_answers(shared_seed()), ""); }

TEST(SharedKeys, WhoIsNotAdmittedReadsNothing) {
  SharedKeyScene s(shared_seed());
  ASSERT_TRUE(s.admit(1));
  EXPECT_EQ(s.next(0, s.keyed.remote().key, 1), "no access");
  EXPECT_EQ(s.next(1, s.keyed.remote().key, 1), SharedKeyScene::as_text(TellingReads::keyed(1)));
  s.regions().dismiss(*s.map, s.own[1].remote().key);
  EXPECT_EQ(s.next(1, s.keyed.remote().key, 1), "no access");
}

TEST(SharedKeys, WhoseOwnKeyIsVoidReadsNothing) {
  SharedKeyScene s(shared_seed());
  ASSERT_TRUE(s.admit(0));
  s.own[0].make_void();
  EXPECT_EQ(s.next(0, s.redirect.remote().key, s.redirect.remote().base), "no access");
}

TEST(SharedKeys, AnAddressThatIsNoneBringsZeros) {
  SharedKeyScene s(shared_seed());
  ASSERT_TRUE(s.admit(0));
  const RemoteRegion& at = s.redirect.remote();
  for (const std::uint64_t address :
       {at.at(SharedKeyScene::kBytes), at.base - 1, std::uint64_t{0}, ~std::uint64_t{0}}) {
    EXPECT_EQ(s.next(0, at.key, address), "0") << address;
  }
  EXPECT_EQ(s.next(0, s.keyed.remote().key, ~std::uint64_t{0}),
            SharedKeyScene::as_text(TellingReads::keyed(~std::uint64_t{0})));
  EXPECT_EQ(s.pairs[0]->state(), QueuePair::State::connected);
}

TEST(SharedKeys, AVoidRedirectKeyBringsZerosAndARevokedOneIsRefused) {
  SharedKeyScene s(shared_seed());
  ASSERT_TRUE(s.admit(0));
  ASSERT_TRUE(s.admit(1));
  const RemoteRegion at = s.redirect.remote();
  s.redirect.make_void();
  EXPECT_EQ(s.next(0, at.key, at.at(512)), "0");
  s.redirect.revoke();
  EXPECT_EQ(s.next(0, at.key, at.at(512)), "no access");
  EXPECT_NE(s.next(1, s.keyed.remote().key, 3), "no access");
}

TEST(SharedKeys, AreNoKeysOfRegions) {
  SharedKeyScene s(shared_seed());
  ASSERT_TRUE(s.admit(0));
  RegionTable::Reader reader(s.regions());
  for (const RemoteRegion& remote : {s.keyed.remote(), s.redirect.remote()}) {
    for (const Domain domain : {0u, 1u}) {
      EXPECT_EQ(reader.find(remote.key, remote.base, 8, RemoteRights::read, domain), nullptr);
      EXPECT_EQ(reader.find(remote.key, remote.base, 8, RemoteRights::none, domain), nullptr);
      EXPECT_FALSE(reader.find_source(remote.key, remote.base, 8, domain));
      EXPECT_EQ(s.regions().mapping(remote.key, domain).error().code, Code::not_found);
    }
    EXPECT_EQ(s.regions().admit(*s.map, remote.key).error().code, Code::not_found);
  }
  EXPECT_EQ(reader.find_shared(s.own[0].remote().key, 0, 1).kind, SharedSource::Kind::none);
  EXPECT_EQ(s.regions().admit(*s.map, 0).error().code, Code::not_found);
  EXPECT_FALSE(s.regions().offer_shared(nullptr, SharedKind::keyed));
  EXPECT_FALSE(s.regions().offer_shared(s.map, SharedKind::redirect, 0));
}

// Keys in the reserved places are recognised by their number; there are no more than those.
TEST(SharedKeys, KeyedOnesHavePlacesOfTheirOwn) {
  SharedKeyScene s(shared_seed());
  std::vector<Registration> keyed;
  for (std::uint32_t i = 0; i + 1 < RegionTable::kKeyedMax; ++i) {
    keyed.push_back(*s.regions().offer_shared(s.map, SharedKind::keyed));
    ASSERT_TRUE(RegionTable::is_keyed(keyed.back().remote().key));
  }
  EXPECT_TRUE(RegionTable::is_keyed(s.keyed.remote().key));
  EXPECT_FALSE(RegionTable::is_keyed(s.redirect.remote().key));
  const auto more = s.regions().offer_shared(s.map, SharedKind::keyed);
  ASSERT_TRUE(more);
  EXPECT_FALSE(RegionTable::is_keyed(more->remote().key));
}

// Two tables come to one key by one number, and only one map has it.
TEST(SharedKeys, NodesAgreeOnAKeyByANumber) {
  SharedKeyScene s(shared_seed());
  SharedKeyScene other(shared_seed() + 1);
  const auto is_taken = [&](RegionKey wanted) {
    const auto has_place = [&](const SharedKeyScene& of) {
      return ((of.keyed.remote().key ^ wanted) & 0xFFFF) == 0;
    };
    return has_place(s) || has_place(other);
  };
  std::uint64_t number = 5;
  while (is_taken(RegionTable::agreed_key(number))) ++number;
  const RegionKey key = RegionTable::agreed_key(number);
  EXPECT_TRUE(RegionTable::is_keyed(key));
  EXPECT_NE(key, RegionTable::agreed_key(number + 1));
  auto here = s.regions().offer_agreed(s.map, key);
  ASSERT_TRUE(here);
  EXPECT_EQ(here->remote().key, key);
  EXPECT_EQ(other.regions().offer_agreed(other.map, key)->remote().key, key);
  ASSERT_TRUE(s.admit(0));
  EXPECT_EQ(s.next(0, key, 3), SharedKeyScene::as_text(TellingReads::keyed(3)));
  EXPECT_EQ(s.regions().offer_agreed(s.map, key).error().code, Code::already_exists);
  here->revoke();
  EXPECT_EQ(s.regions().offer_agreed(s.map, key).error().code, Code::already_exists)
      << "it was the last one of its place";
  EXPECT_TRUE(s.regions().offer_agreed(s.map, key ^ 0x10000));
  EXPECT_EQ(s.regions().offer_agreed(s.map, s.own[0].remote().key).error().code,
            Code::invalid_argument);
  EXPECT_EQ(s.regions().offer_agreed(nullptr, key).error().code, Code::invalid_argument);
}

// A place that had a shared key serves a region next, and the other way round.
TEST(SharedKeys, PlacesChangeTheirKind) {
  SharedKeyScene s(shared_seed());
  ASSERT_TRUE(s.admit(0));
  const RegionKey before = s.redirect.remote().key;
  s.redirect.revoke();
  auto region = *s.regions().offer({s.scene.memory.data(), 64}, RemoteRights::read, 1);
  ASSERT_EQ(region.remote().key & 0xFFFF, before & 0xFFFF);
  RegionTable::Reader reader(s.regions());
  EXPECT_TRUE(reader.find_source(region.remote().key, region.remote().base, 8, 1));
  EXPECT_EQ(reader.find_shared(region.remote().key, 0, 1).kind, SharedSource::Kind::none);
}

}  // namespace
}  // namespace espalier::fabric::roce
