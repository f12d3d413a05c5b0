// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/walk/map_view.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace espalier::tree {
namespace {

constexpr std::uint64_t kRegionBytes = std::uint64_t{8} << 20;

wire::MapHeader good_header() {
  wire::MapHeader header{};
  header.map_id = 5;
  header.generation = 9;
  header.created = wire::kNoNode;
  header.superseded = wire::kLive;
  header.magic = wire::kMapMagic;
  header.format = wire::kMapFormat;
  header.node_bytes = 8192;
  header.log_bytes = 512;
  header.versions = 1;
  header.directory_offset = std::uint64_t{2} << 20;
  header.root = (wire::kHeaderWords << wire::kTablePageShift) + wire::kHeaderWords;
  header.clock_offset = 4096 + 64;
  return header;
}

TEST(MapView, SaysWhatTheHeaderSays) {
  const auto view = MapView::read(good_header(), 4096, kRegionBytes, nullptr);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->id, 5u);
  EXPECT_EQ(view->header_offset, 4096u);
  EXPECT_EQ(view->geometry.node_bytes, 8192u);
  EXPECT_TRUE(view->versions);
  EXPECT_EQ(view->clock_offset, 4096u + 64);
  EXPECT_FALSE(view->shares_clock());
  EXPECT_TRUE(view->same_map(5, 9, wire::kLive));
  EXPECT_FALSE(view->same_map(5, 9, 0)) << "dropped";
  EXPECT_FALSE(view->same_map(5, 10, wire::kLive)) << "another buffer";
  EXPECT_FALSE(view->same_map(6, 9, wire::kLive)) << "another map";
}

TEST(MapView, RefusesWhatCannotBeAMap) {
  struct Case {
    const char* what;
    std::function<void(wire::MapHeader&)> change;
    std::uint32_t detail;
  };
  const Case cases[] = {
      {"zeros", [](wire::MapHeader& h) { h = {}; }, 1},
      {"another magic", [](wire::MapHeader& h) { ++h.magic; }, 1},
      {"dropped", [](wire::MapHeader& h) { h.superseded = 0; }, 2},
      {"no id", [](wire::MapHeader& h) { h.map_id = 0; }, 2},
      {"node bytes", [](wire::MapHeader& h) { h.node_bytes = 8191; }, 3},
      {"node bytes of 4 GiB", [](wire::MapHeader& h) { h.node_bytes = 1u << 31; }, 3},
      {"log bytes", [](wire::MapHeader& h) { h.log_bytes = 1u << 20; }, 3},
      {"versions", [](wire::MapHeader& h) { h.versions = 2; }, 3},
      {"directory outside", [](wire::MapHeader& h) { h.directory_offset = kRegionBytes - 512; }, 4},
      {"directory beyond all", [](wire::MapHeader& h) { h.directory_offset = ~511ull; }, 4},
      {"directory at no block", [](wire::MapHeader& h) { h.directory_offset += 8; }, 4},
      {"no root", [](wire::MapHeader& h) { h.root = 0; }, 4},
      {"root in no page", [](wire::MapHeader& h) { h.root = ~0u; }, 4},
      {"clock outside", [](wire::MapHeader& h) { h.clock_offset = kRegionBytes; }, 5},
      {"clock's end outside", [](wire::MapHeader& h) { h.clock_offset = kRegionBytes - 64; }, 5},
      {"clock beyond all", [](wire::MapHeader& h) { h.clock_offset = ~63ull; }, 5},
      {"clock at no line", [](wire::MapHeader& h) { h.clock_offset += 8; }, 5},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    wire::MapHeader header = good_header();
    one.change(header);
    const auto view = MapView::read(header, 4096, kRegionBytes, nullptr);
    ASSERT_FALSE(view);
    EXPECT_EQ(view.error().code, Code::corrupt);
    EXPECT_EQ(view.error().detail, one.detail);
  }
}

TEST(MapView, SaysWhereTheClockOfAGroupLies) {
  wire::MapHeader header = good_header();
  header.clock_offset = kRegionBytes - 128;
  const auto view = MapView::read(header, 4096, kRegionBytes, nullptr);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->clock_offset, kRegionBytes - 128);
  EXPECT_TRUE(view->shares_clock());
}

TEST(MapView, RefusesAnotherFormat) {
  for (const std::uint32_t format : {0u, 1u, 2u, wire::kMapFormat + 1, 77u}) {
    wire::MapHeader header = good_header();
    header.format = format;
    const auto view = MapView::read(header, 4096, kRegionBytes, nullptr);
    ASSERT_FALSE(view);
    EXPECT_EQ(view.error().code, Code::unsupported);
    EXPECT_EQ(view.error().detail, format);
  }
}

TEST(MapView, HoldsWhatLiesInTheRegion) {
  const auto view = MapView::read(good_header(), 4096, kRegionBytes, nullptr);
  ASSERT_TRUE(view);
  EXPECT_TRUE(view->holds(kRegionBytes, 0));
  EXPECT_TRUE(view->holds(0, kRegionBytes));
  EXPECT_FALSE(view->holds(1, kRegionBytes));
  EXPECT_FALSE(view->holds(~std::uint64_t{0}, 2)) << "must not wrap";
  EXPECT_TRUE(view->holds_node(wire::Ref::make(kRegionBytes - 8192, 1)));
  EXPECT_FALSE(view->holds_node(wire::Ref::make(kRegionBytes - 4096, 1)));
}

}  // namespace
}  // namespace espalier::tree
