// SPDX-License-Identifier: Apache-2.0
#include "base/peer_user.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace espalier::base {
namespace {

TEST(PeerUser, IsTheUserOfTheOtherEnd) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  const auto peer = peer_user(ends[0]);
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->process, ::getpid());
  EXPECT_EQ(peer->user, ::geteuid());
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(PeerUser, NobodyIsKnownWhereTheSystemDoesNotSay) {
  const Error unknown{Code::not_permitted, 0, 0};
  EXPECT_EQ(peer_user(-1).error(), unknown);
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(peer_user(ends[0]).error(), unknown) << "it is no socket";
  ::close(ends[0]);
  ::close(ends[1]);
  const int alone = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
  ASSERT_GE(alone, 0);
  EXPECT_EQ(peer_user(alone).error(), unknown) << "nobody is at its other end";
  ::close(alone);
}

TEST(PeerUser, RootAndTheOwnUserAreToldFromThoseThatAreNotMapped) {
  EXPECT_TRUE(is_own_or_root(0, {1000}));
  EXPECT_TRUE(is_own_or_root(1000, {1000}));
  EXPECT_FALSE(is_own_or_root(1001, {1000}));
  EXPECT_TRUE(is_own_or_root(65534, {65534})) << "all users are mapped";
  EXPECT_FALSE(is_own_or_root(65534, {65534, 65534}));
}

TEST(PeerUser, UsersAreKnownByNameAndNumber) {
  EXPECT_EQ(user_named("root"), 0);
  EXPECT_EQ(user_named("0"), 0);
  EXPECT_EQ(user_named("424242"), 424'242) << "it needs no name";
  for (const char* none : {"", "-1", "4294967295", "4294967296", "1x", "no such user"}) {
    EXPECT_FALSE(user_named(none)) << none;
  }
}

TEST(PeerUser, AMapOfAllUsersIsKnown) {
  EXPECT_TRUE(maps_all_users("         0          0 4294967295\n"));
  EXPECT_TRUE(maps_all_users("0 1000 1\n1 0 1000\n1001 1001 4294966294\n"));
  EXPECT_FALSE(maps_all_users("         0     100000      65536\n"));
  EXPECT_FALSE(maps_all_users("65534 1000 1\n"));
  EXPECT_FALSE(maps_all_users("")) << "what cannot be read maps nobody";
  EXPECT_FALSE(maps_all_users("nonsense"));
  EXPECT_EQ(known_users().own, ::geteuid());
}

}  // namespace
}  // namespace espalier::base
