// SPDX-License-Identifier: Apache-2.0
// Golden bytes of what goes beside and around the frames that travel as datagrams. A test that
// fails here says that the format changed, and then its version must.
#include "wire/fabric_ofi_datagrams.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/bytes.hpp"

namespace espalier::wire::ofi {
namespace {

using base::bytes_of;
using std::string_literals::operator""s;

TEST(FabricOfiDatagrams, Introductions) {
  Introduction introduction{kIntroductionMagic, kDatagramFormat, 2, 3, 4, 5, 6, 0, {}};
  introduction.address[0] = 7;
  introduction.address[kProviderAddressMax - 1] = 8;
  EXPECT_EQ(bytes_of(introduction),
            "ESPBFRDM\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\5\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0\7"s +
                std::string(kProviderAddressMax - 2, '\0') + "\10"s);
}

TEST(FabricOfiDatagrams, Heads) {
  EXPECT_EQ(bytes_of(DatagramHead{1, 2, 3, {}}), "\1\0\0\0\0\0\0\0\2\0\0\0\3\0\0\0"s);
  EXPECT_EQ(bytes_of(Key{9}), "\11\0\0\0\0\0\0\0"s);
}

}  // namespace
}  // namespace espalier::wire::ofi
