// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/client/hash_opening.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/bytes.hpp"

namespace espalier::client {
namespace {

constexpr std::uint64_t kOpenedBytes = std::uint64_t{1} << 30;

std::string opening_field(wire::FieldKind kind, std::string_view content) {
  wire::FieldHeader header{};
  header.kind = static_cast<std::uint16_t>(kind);
  header.bytes = static_cast<std::uint32_t>(content.size());
  std::string bytes(base::bytes_of(header));
  bytes += content;
  bytes.resize((bytes.size() + 7) / 8 * 8);
  return bytes;
}

hash::HashPlace some_place() {
  hash::HashPlace place{};
  place.header_offset = 65'536;
  place.header.map_id = 9;
  place.header.generation = 3;
  place.header.superseded = wire::kLive;
  place.header.magic = hash::kHashMagic;
  place.header.format = hash::kHashFormat;
  place.header.partitions = 64;
  place.header.versions = 1;
  place.header.seed[0] = 5;
  place.header.clock_offset = 65'536 + 64;
  return place;
}

std::string opening_of(const hash::HashPlace& place, std::uint64_t lease = 5) {
  return opening_field(
             wire::FieldKind::lease,
             base::bytes_of(wire::LeaseGrant{lease, 40, 20'000'000, 200'000'000, 1'000'000'000})) +
         opening_field(wire::FieldKind::hash, base::bytes_of(place)) +
         opening_field(wire::FieldKind::region,
                       base::bytes_of(wire::OfferedRegion{0x1000, kOpenedBytes, 77, 0}));
}

Error error_of_opening(const hash::HashPlace& place, std::uint32_t asked = 9,
                       std::uint64_t lease = 5) {
  const auto opening = HashOpening::read(opening_of(place, lease));
  EXPECT_TRUE(opening);
  const auto target = opening->target_of(asked);
  return target ? Error{} : target.error();
}

TEST(HashOpening, TellsWhereAHashMapLies) {
  const auto opening = HashOpening::read(opening_of(some_place()));
  ASSERT_TRUE(opening);
  EXPECT_EQ(opening->region.key, 77u);
  EXPECT_EQ(opening->lease.lease, 5u);
  const auto target = opening->target_of(9);
  ASSERT_TRUE(target) << message(target.error());
  EXPECT_EQ(target->id, 9u);
  EXPECT_EQ(target->generation, 3u);
  EXPECT_EQ(target->partition_bits, 6u);
  EXPECT_EQ(target->seed.first, 5u);
  EXPECT_EQ(target->partition_line(1), 65'536u + 192 + 64);
  EXPECT_EQ(target->region_bytes, kOpenedBytes);
  EXPECT_FALSE(target->shares_clock());
}

TEST(HashOpening, RefusesWhatCannotBe) {
  EXPECT_EQ(error_of_opening(some_place(), 8), (Error{Code::corrupt, 0, 2})) << "another map";
  EXPECT_EQ(error_of_opening(some_place(), 9, 0), (Error{Code::corrupt, 0, 2})) << "no lease";
  hash::HashPlace place = some_place();
  place.header_offset = kOpenedBytes - 512;
  EXPECT_EQ(error_of_opening(place), (Error{Code::corrupt, 0, 4}));
  for (const std::uint64_t clock :
       {kOpenedBytes, kOpenedBytes - 64, ~std::uint64_t{63}, kOpenedBytes - 120}) {
    place = some_place();
    place.header.clock_offset = clock;
    EXPECT_EQ(error_of_opening(place), (Error{Code::corrupt, 0, 5})) << clock;
  }
  place = some_place();
  place.header.versions = 0;
  EXPECT_EQ(error_of_opening(place).code, Code::unsupported);
}

TEST(HashOpening, RefusesWhatIsCutOrMissing) {
  const std::string all = opening_of(some_place());
  ASSERT_TRUE(HashOpening::read(opening_field(static_cast<wire::FieldKind>(99), "new") + all));
  for (std::size_t bytes = 0; bytes < all.size(); ++bytes) {
    EXPECT_FALSE(HashOpening::read(std::string_view(all).substr(0, bytes))) << bytes;
  }
}

}  // namespace
}  // namespace espalier::client
