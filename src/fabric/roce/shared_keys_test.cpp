// SPDX-License-Identifier: Apache-2.0
// Keys that the sessions of a map share: who may read by them, and what comes.
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
