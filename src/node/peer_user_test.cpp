// SPDX-License-Identifier: Apache-2.0
#include "node/peer_user.hpp"

#include <gtest/gtest.h>

namespace espalier::node {
namespace {

using offload::Right;

TEST(AccessOfUser, TheOwnUserAndRootAreAdministratorsAndOthersMayWrite) {
  const base::KnownUsers known{1000};
  EXPECT_EQ(access_of_user(1000, known).role(), Right::admin);
  EXPECT_EQ(access_of_user(0, known).role(), Right::admin);
  EXPECT_EQ(access_of_user(1001, known).role(), Right::write);
  EXPECT_EQ(access_of_user(65534, known).role(), Right::write);
  EXPECT_EQ(access_of_user(1000, known).who(), "user 1000");
  EXPECT_EQ(access_of_user(65534, {65534}).role(), Right::admin) << "all users are mapped";
}

// All users that are not mapped have one name, which may be that of the node's own, too.
TEST(AccessOfUser, NobodyIsAnAdministratorByTheNameOfThoseThatAreNotMapped) {
  EXPECT_EQ(access_of_user(65534, {65534, 65534}).role(), Right::write);
  EXPECT_EQ(access_of_user(1000, {1000, 65534}).role(), Right::admin);
  EXPECT_EQ(access_of_user(0, {65534, 65534}).role(), Right::admin);
}

}  // namespace
}  // namespace espalier::node
