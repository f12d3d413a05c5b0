// SPDX-License-Identifier: Apache-2.0
// Golden bytes of what is said of regions, and what a place may be.
#include "kinds/region/format.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/bytes.hpp"

namespace espalier::region {
namespace {

TEST(RegionFormat, HasTheseBytes) {
  EXPECT_EQ(base::bytes_of(RegionRange{0x0102030405060708, 0x11121314, 0}),
            std::string("\x08\x07\x06\x05\x04\x03\x02\x01\x14\x13\x12\x11\0\0\0\0", 16));
  EXPECT_EQ(base::bytes_of(RegionSwap{1, 2, 3}),
            std::string("\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0", 24));
  EXPECT_EQ(base::bytes_of(RegionGrant{1, 2, 3, kGrantsAtomics}),
            std::string("\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\3\0\0\0\1\0\0\0", 24));
  EXPECT_EQ(base::bytes_of(PersistentForm{0x1234, PersistentForm::kPersistent, 0}),
            std::string("\x34\x12\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 16));
}

TEST(RegionFormat, PlacesAreWithinWithoutOverflow) {
  constexpr std::uint64_t kMost64 = std::numeric_limits<std::uint64_t>::max();
  EXPECT_TRUE(is_within(8, 0, 8));
  EXPECT_TRUE(is_within(8, 8, 0));
  EXPECT_FALSE(is_within(8, 9, 0));
  EXPECT_FALSE(is_within(8, 1, 8));
  EXPECT_FALSE(is_within(8, kMost64, 2));
  EXPECT_FALSE(is_within(8, 4, kMost64));
  EXPECT_EQ(fault_of_word(8, 0), std::nullopt);
  EXPECT_EQ(fault_of_word(8, 8), RegionFault::beyond);
  EXPECT_EQ(fault_of_word(8, 4), RegionFault::misaligned);
  EXPECT_EQ(fault_of_word(7, 0), RegionFault::beyond);
}

}  // namespace
}  // namespace espalier::region
