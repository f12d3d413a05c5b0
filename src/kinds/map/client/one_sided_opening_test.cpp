// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/client/one_sided_opening.hpp"

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

wire::MapPlace good_place() {
  wire::MapPlace place{};
  place.header_offset = 4096;
  place.header.map_id = 7;
  place.header.superseded = wire::kLive;
  place.header.magic = wire::kMapMagic;
  place.header.format = wire::kMapFormat;
  place.header.node_bytes = 8192;
  place.header.log_bytes = 512;
  place.header.versions = 1;
  place.header.directory_offset = 65536;
  place.header.clock_offset = 4096 + 64;
  place.header.root = (wire::kHeaderWords << wire::kTablePageShift) + wire::kHeaderWords;
  return place;
}

const std::string kRegion =
    field(1, base::bytes_of(wire::OfferedRegion{0x1000, kRegionBytes, 77, 0}));
const std::string kLease =
    field(3, base::bytes_of(wire::LeaseGrant{5, 40, 20'000'000, 200'000'000, 1'000'000'000}));

TEST(OneSidedOpening, TellsRegionMapAndLease) {
  const std::string place = field(2, base::bytes_of(good_place()));
  const auto opening = OneSidedOpening::read(kLease + place + kRegion);
  ASSERT_TRUE(opening) << message(opening.error());
  EXPECT_EQ(opening->region.key, 77u);
  EXPECT_EQ(opening->lease.epoch, 40u);
  const auto view = opening->view_of(7);
  ASSERT_TRUE(view) << message(view.error());
  EXPECT_EQ(view->geometry.node_bytes, 8192u);
  EXPECT_EQ(opening->view_of(8).error().detail, 2u) << "another map";
}

TEST(OneSidedOpening, TellsTheKeysOfReadsThatCarryOne) {
  const std::string others = kLease + field(2, base::bytes_of(good_place())) + kRegion;
  const auto keyed = [](std::uint32_t prefix_bytes, std::string_view prefix) {
    return field(
        5, std::string(base::bytes_of(wire::KeyedPlace{9, prefix_bytes})) + std::string(prefix));
  };
  const auto opening = OneSidedOpening::read(
      others + keyed(5, "user-") + field(6, base::bytes_of(wire::RedirectPlace{64, 128, 10, 0})));
  ASSERT_TRUE(opening);
  ASSERT_TRUE(opening->keyed);
  EXPECT_EQ(opening->keyed->key, 9u);
  EXPECT_EQ(opening->keyed->prefix, "user-");
  ASSERT_TRUE(opening->redirect);
  EXPECT_EQ(opening->redirect->base, 64u);
  EXPECT_FALSE(OneSidedOpening::read(others)->keyed);
  EXPECT_FALSE(OneSidedOpening::read(others)->redirect);
  EXPECT_FALSE(OneSidedOpening::read(others + keyed(9, "user-"))->keyed) << "it is cut";
  EXPECT_FALSE(OneSidedOpening::read(others + keyed(461, std::string(461, 'k')))->keyed)
      << "longer than keys are";
  EXPECT_FALSE(OneSidedOpening::read(others + field(5, "1234"))->keyed);
  EXPECT_FALSE(OneSidedOpening::read(others + field(6, "12345678"))->redirect);
}

TEST(OneSidedOpening, TellsTheBordersOfAShard) {
  const std::string others = kLease + field(2, base::bytes_of(good_place())) + kRegion;
  const auto borders = [&](std::uint32_t low, std::uint32_t high, std::string_view both) {
    return OneSidedOpening::read(
        others +
        field(8, std::string(base::bytes_of(wire::ShardBorders{low, high})) + std::string(both)));
  };
  EXPECT_FALSE(OneSidedOpening::read(others)->borders) << "the whole map";
  const auto middle = borders(1, 2, "dmm");
  ASSERT_TRUE(middle && middle->borders);
  EXPECT_EQ(middle->borders->low, "d");
  EXPECT_EQ(middle->borders->high, "mm");
  const auto last = borders(1, 0, "d");
  ASSERT_TRUE(last && last->borders);
  EXPECT_TRUE(last->borders->bounds().has_range("d", ""));
  EXPECT_TRUE(borders(0, 0, ""));
  EXPECT_EQ(borders(1, 3, "dmm").error().detail, 4u) << "they are cut";
  EXPECT_EQ(borders(1, 1, "md").error().detail, 4u) << "they descend";
  EXPECT_EQ(borders(1, 1, "dd").error().detail, 4u) << "no key lies between";
  EXPECT_FALSE(borders(461, 0, std::string(461, 'k'))) << "longer than keys are";
  EXPECT_FALSE(borders(0xFFFFFFFF, 2, "d")) << "their sum overflows";
  EXPECT_FALSE(OneSidedOpening::read(others + field(8, "1234")));
}

TEST(OneSidedOpening, OfATableIsNone) {
  const std::string table = field(4, std::string(16, '\1'));
  const auto opening = OneSidedOpening::read(kLease + table + kRegion);
  ASSERT_FALSE(opening);
  EXPECT_EQ(opening.error().detail, 1u);
}

TEST(OneSidedOpening, SkipsWhatLaterVersionsAdd) {
  const std::string longer = field(2, std::string(base::bytes_of(good_place())) + "more");
  const auto opening =
      OneSidedOpening::read(field(99, "new") + kRegion + field(0, "") + longer + kLease);
  ASSERT_TRUE(opening) << message(opening.error());
  EXPECT_TRUE(opening->view_of(7));
}

TEST(OneSidedOpening, RefusesWhatIsCutOrMissing) {
  const std::string place = field(2, base::bytes_of(good_place()));
  const std::string all = kRegion + place + kLease;
  for (std::size_t bytes = 0; bytes < all.size(); ++bytes) {
    EXPECT_FALSE(OneSidedOpening::read(std::string_view(all).substr(0, bytes))) << bytes;
  }
  EXPECT_FALSE(OneSidedOpening::read(kRegion + place + field(3, "short")));
  std::string lies = all;
  lies[4] = lies[5] = lies[6] = lies[7] = '\xFF';  // the first field's length
  EXPECT_FALSE(OneSidedOpening::read(lies));
}

TEST(OneSidedOpening, RefusesAMapThatIsNone) {
  const auto with = [](auto spoil) {
    wire::MapPlace place = good_place();
    spoil(place.header);
    return OneSidedOpening::read(kRegion + field(2, base::bytes_of(place)) + kLease)->view_of(7);
  };
  EXPECT_TRUE(with([](wire::MapHeader&) {}));
  EXPECT_FALSE(with([](wire::MapHeader& header) { header.superseded = 0; }));
  EXPECT_FALSE(with([](wire::MapHeader& header) { header.magic = 0; }));
  EXPECT_FALSE(with([](wire::MapHeader& header) { header.node_bytes = 1000; }));
  EXPECT_FALSE(with([](wire::MapHeader& header) { header.directory_offset = kRegionBytes; }));
  EXPECT_FALSE(with([](wire::MapHeader& header) { header.root = 0; }));
}

}  // namespace
}  // namespace espalier::client
