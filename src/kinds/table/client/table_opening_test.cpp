// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/client/table_opening.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/bytes.hpp"

namespace espalier::client {
namespace {

constexpr std::uint64_t kRegionBytes = std::uint64_t{1} << 30;

std::string field(std::uint16_t kind, std::string_view content) {
  wire::FieldHeader header{};
  header.kind = kind;
  header.bytes = static_cast<std::uint32_t>(content.size());
  std::string bytes(base::bytes_of(header));
  bytes += content;
  bytes.resize((bytes.size() + 7) / 8 * 8);
  return bytes;
}

const std::string kRegion =
    field(1, base::bytes_of(wire::OfferedRegion{0x1000, kRegionBytes, 77, 0}));
const std::string kLease =
    field(3, base::bytes_of(wire::LeaseGrant{5, 40, 20'000'000, 200'000'000, 1'000'000'000}));

TEST(TableOpening, TellsWhereATableLies) {
  const auto place_of = [](wire::TablePlace place, std::uint32_t asked = 9) {
    const auto opening = TableOpening::read(kLease + field(4, base::bytes_of(place)) + kRegion);
    EXPECT_TRUE(opening);
    const auto found = opening->place_of(asked);
    return found ? 0u : found.error().detail;
  };
  EXPECT_EQ(place_of({65536, 9, 3}), 0u);
  EXPECT_EQ(place_of({65536, 9, 3}, 8), 2u) << "another table";
  EXPECT_EQ(place_of({65536, 0, 3}, 0), 2u) << "no table";
  EXPECT_EQ(place_of({65537, 9, 3}), 3u);
  EXPECT_EQ(place_of({kRegionBytes - wire::kTableHeaderBytes, 9, 3}), 0u);
  EXPECT_EQ(place_of({kRegionBytes - wire::kTableHeaderBytes + 512, 9, 3}), 3u);
  EXPECT_EQ(place_of({~std::uint64_t{511}, 9, 3}), 3u);
}

TEST(TableOpening, RefusesWhatIsCutOrMissing) {
  const std::string place = field(4, base::bytes_of(wire::TablePlace{65536, 9, 3}));
  const std::string all = kRegion + place + kLease;
  ASSERT_TRUE(TableOpening::read(field(99, "new") + all));
  for (std::size_t bytes = 0; bytes < all.size(); ++bytes) {
    EXPECT_FALSE(TableOpening::read(std::string_view(all).substr(0, bytes))) << bytes;
  }
  EXPECT_FALSE(TableOpening::read(kRegion + field(2, std::string(512, '\0')) + kLease))
      << "a map, and no table";
}

}  // namespace
}  // namespace espalier::client
