// SPDX-License-Identifier: Apache-2.0
#include "engine/principal_accounts.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/relayed_accounts.hpp"

namespace espalier::offload {
namespace {

TEST(PrincipalAccounts, APrincipalIsASecretElseAUserElseAPlace) {
  EXPECT_EQ(principal_of_secret("alice"), "secret alice");
  EXPECT_EQ(principal_of_user(1000), "user 1000");
  EXPECT_EQ(principal_of_peer("process 12 of user 1000"), "user 1000");
  EXPECT_EQ(principal_of_peer("192.0.2.1:4791"), "address 192.0.2.1");
  EXPECT_EQ(principal_of_peer("192.0.2.1:49152"), "address 192.0.2.1");
  EXPECT_EQ(principal_of_peer("[2001:db8::1]:4791"), "address 2001:db8::/64");
  EXPECT_EQ(principal_of_peer("[2001:db8::2]:4791"), "address 2001:db8::/64");
}

TEST(PrincipalAccounts, HaveOneAccountForAllThatComeAsTheSame) {
  PrincipalAccounts accounts;
  const PrincipalRef alice = accounts.of(principal_of_secret("alice"));
  EXPECT_EQ(accounts.of(principal_of_secret("alice")), alice);
  const PrincipalRef user = accounts.of(principal_of_user(7));
  EXPECT_NE(user, alice);
  EXPECT_NE(user->number, alice->number);
  EXPECT_EQ(user->name, "user 7");
  EXPECT_EQ(accounts.size(), 2u);
  EXPECT_EQ(accounts.all().size(), 2u);
}

TEST(PrincipalAccounts, OnesThatNobodyKeepsAreForgottenInTime) {
  PrincipalAccounts accounts;
  const PrincipalRef kept = accounts.of("address kept");
  const std::uint64_t number = accounts.of("address again")->number;
  EXPECT_EQ(accounts.of("address again")->number, number);  // it is not removed immediately
  for (std::size_t i = 0; i < 10 * PrincipalAccounts::kKept; ++i) {
    ASSERT_NE(accounts.of("address " + std::to_string(i)), nullptr);
    ASSERT_LE(accounts.size(), PrincipalAccounts::kKept);
  }
  EXPECT_EQ(accounts.of("address kept"), kept);
  EXPECT_NE(accounts.of("address again")->number, number);
}

TEST(PrincipalAccounts, AreBoundedWhoeverKeepsThem) {
  PrincipalAccounts accounts;
  std::vector<PrincipalRef> kept;
  for (std::size_t i = 0; i < PrincipalAccounts::kMost; ++i) {
    kept.push_back(accounts.of("address " + std::to_string(i)));
  }
  const PrincipalRef other = accounts.of("address more");
  EXPECT_EQ(accounts.of("address still more"), other);
  EXPECT_EQ(accounts.size(), PrincipalAccounts::kMost);
  kept.clear();  // and when they have gone, each has its own again
  EXPECT_NE(accounts.of("address more"), accounts.of("address still more"));
}

TEST(PrincipalAccounts, AreThoseOnWhoseBehalfADeviceRelays) {
  PrincipalAccounts accounts;
  RelayedAccounts relayed;
  const PrincipalRef device = accounts.of(principal_of_secret("device"));
  EXPECT_EQ(relayed.of("alice", device, accounts), accounts.of("secret alice"));
  EXPECT_EQ(relayed.of("user 1000", device, accounts), accounts.of("user 1000"));
  EXPECT_EQ(relayed.of("anybody", device, accounts), device);
  for (std::size_t i = 0; i < 3 * RelayedAccounts::kMost; ++i) {
    const std::string name = "user " + std::to_string(i);
    ASSERT_EQ(relayed.of(name, device, accounts), accounts.of(name));
  }
}

}  // namespace
}  // namespace espalier::offload
