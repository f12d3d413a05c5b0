// SPDX-License-Identifier: Apache-2.0
#include "base/unix_address.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace espalier::base {
namespace {

const sockaddr_un& as_un(const UnixAddress& address) {
  return *reinterpret_cast<const sockaddr_un*>(address.get());
}

TEST(UnixAddress, AFileIsNamedByItsPath) {
  const auto address = UnixAddress::file("/run/espalier.sock");
  ASSERT_TRUE(address);
  EXPECT_EQ(as_un(*address).sun_family, AF_UNIX);
  EXPECT_STREQ(as_un(*address).sun_path, "/run/espalier.sock");
  EXPECT_EQ(address->bytes(), sizeof(sockaddr_un));
}

TEST(UnixAddress, AnAbstractNameEndsWhereTheAddressEnds) {
  const auto address = UnixAddress::abstract("name");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->bytes(), offsetof(sockaddr_un, sun_path) + 5);
  EXPECT_EQ(std::memcmp(as_un(*address).sun_path, "\0name", 5), 0);
}

TEST(UnixAddress, RefusesWhatDoesNotFit) {
  const Error refused{Code::invalid_argument, 0, UnixAddress::kNameMax};
  const std::string longest(UnixAddress::kNameMax, 'x');
  EXPECT_TRUE(UnixAddress::file(longest));
  EXPECT_EQ(UnixAddress::file(longest + 'x').error(), refused);
  EXPECT_TRUE(UnixAddress::abstract(longest.substr(1)));
  EXPECT_EQ(UnixAddress::abstract(longest).error(), refused);
  EXPECT_EQ(UnixAddress::file("").error(), refused);
  EXPECT_EQ(UnixAddress::abstract("").error(), refused);
}

TEST(UnixAddress, RefusesAPathThatAZeroWouldEndEarly) {
  EXPECT_FALSE(UnixAddress::file(std::string_view("/a\0b", 4)));
}

}  // namespace
}  // namespace espalier::base
