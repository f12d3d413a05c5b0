// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/node/geometry.hpp"

#include <gtest/gtest.h>

#include "kinds/map/testing/tree_fixture.hpp"

namespace espalier::tree {
namespace {

TEST(Geometry, PartsOfALeafFollowEachOther) {
  for (std::uint32_t node_bytes = 512; node_bytes <= 65536; node_bytes *= 2) {
    for (std::uint32_t log_bytes = 0; log_bytes <= 2048; log_bytes += 64) {
      const Geometry g = Geometry::of({.node_bytes = node_bytes, .log_bytes = log_bytes});
      SCOPED_TRACE(std::to_string(node_bytes) + "/" + std::to_string(log_bytes));
      EXPECT_EQ(g.slots_begin, sizeof(wire::NodeHeader));
      EXPECT_GE(g.key_prefixes_begin, g.slots_begin + 2 * g.log_slots);
      EXPECT_GE(g.starts_begin, g.key_prefixes_begin + 2 * g.chunks_max);
      EXPECT_GE(g.places_begin, g.starts_begin + g.chunks_max);
      EXPECT_EQ(g.places_begin % 2, 0u);
      EXPECT_GE(g.sorted_begin, g.places_begin + 2 * g.log_slots);
      EXPECT_EQ(g.sorted_begin % 64, 0u);
      EXPECT_LE(g.sorted_begin, node_bytes / 2);
      EXPECT_GE(g.sorted_begin + (g.chunks_max << g.chunk_shift), node_bytes);
      EXPECT_LE(g.log_slots, wire::kLogSlotsMax);
    }
  }
}

TEST(Geometry, WhatSearchReadsLiesInTheNode) {
  for (const MapOptions& options : all_geometries()) {
    const Geometry g = Geometry::of(options);
    EXPECT_LE(g.chunks_max, 64u);
    EXPECT_LE(g.groups_max, 64u);
    EXPECT_LE(g.slots_begin + 128, g.node_bytes);
    EXPECT_LE(g.key_prefixes_begin + 128, g.node_bytes);
    EXPECT_LE(g.group_key_prefixes_begin + 128, g.node_bytes);
    EXPECT_GE(g.prefix_begin, g.group_key_prefixes_begin + 2 * g.groups_max);
    EXPECT_EQ(g.prefix_begin % 8, 0u);
    EXPECT_GE(g.prefix_room(), 8u);
    EXPECT_EQ(g.prefix_room() % 8, 0u);
    EXPECT_LE(g.groups_begin + (g.groups_max - 1) * sizeof(wire::ChildGroup) + 64, g.node_bytes);
  }
}

TEST(Geometry, StartsFitOneByteAndFFStaysFree) {
  for (const MapOptions& options : all_geometries()) {
    const Geometry g = Geometry::of(options);
    EXPECT_LT(((1u << g.chunk_shift) - 1) >> g.unit_shift, 0xFFu);
    EXPECT_EQ(g.unit_mask, (1u << g.unit_shift) - 1);
  }
}

TEST(Geometry, ThreeLongestItemsFitALeaf) {
  // A leaf that is split must leave room for an item in each half, whatever the fences.
  for (const MapOptions& options : all_geometries()) {
    const Geometry g = Geometry::of(options);
    const std::uint32_t item = 4 + g.key_bytes_max + g.inline_value_bytes_max + g.unit_mask;
    EXPECT_LE(g.sorted_begin + 3 * item / 2 + 2 * g.key_bytes_max, g.node_bytes)
        << options.node_bytes;
  }
}

TEST(Geometry, LimitsShrinkWithTheNode) {
  EXPECT_EQ(Geometry::of({.node_bytes = 512}).key_bytes_max, 32u);
  EXPECT_EQ(Geometry::of({.node_bytes = 4096}).key_bytes_max, 256u);
  EXPECT_EQ(Geometry::of({.node_bytes = 8192}).key_bytes_max, wire::kKeyBytesMax);
  EXPECT_EQ(Geometry::of({.node_bytes = 8192}).inline_value_bytes_max, wire::kInlineValueBytesMax);
  EXPECT_EQ(Geometry::of({.node_bytes = 512, .log_bytes = 2048}).log_bytes, 128u);
}

TEST(Geometry, ALogIsMadeForTenItemsOfItsLeaf) {
  const Geometry g = Geometry::of({});
  EXPECT_EQ(g.leaf_log_bytes(0, 0, false), 512u);
  EXPECT_EQ(g.leaf_log_bytes(100 * 34, 100, false), 512u);  // ten entries of 48 bytes are 480
  EXPECT_EQ(g.leaf_log_bytes(50 * 118, 50, false), 1360u);  // values of 100 bytes
  EXPECT_EQ(g.leaf_log_bytes(12 * 600, 12, false), 2048u);  // no more than 2048,
  EXPECT_EQ(Geometry::of({.node_bytes = 4096}).leaf_log_bytes(12 * 300, 12, false), 1024u);
  EXPECT_EQ(Geometry::of({.log_bytes = 64}).leaf_log_bytes(12 * 300, 12, false), 640u);  // 2 slots
  EXPECT_EQ(Geometry::of({.log_bytes = 0}).leaf_log_bytes(12 * 300, 12, false), 0u);
  EXPECT_EQ(g.leaf_log_bytes(100 * 34, 100, true), 768u);  // the last leaf has 16 entries
  EXPECT_EQ(Geometry::of({.log_bytes = 2048}).leaf_log_bytes(100 * 34, 100, false), 2048u);
}

TEST(Geometry, RefusesOptionsOutsideTheFormat) {
  EXPECT_TRUE(Geometry::valid({}));
  EXPECT_TRUE(Geometry::valid({.node_bytes = 512, .log_bytes = 0}));
  EXPECT_TRUE(Geometry::valid({.node_bytes = 65536, .log_bytes = 2048}));
  EXPECT_FALSE(Geometry::valid({.node_bytes = 256}));
  EXPECT_FALSE(Geometry::valid({.node_bytes = 131072}));
  EXPECT_FALSE(Geometry::valid({.node_bytes = 5000}));
  EXPECT_FALSE(Geometry::valid({.log_bytes = 100}));
  EXPECT_FALSE(Geometry::valid({.log_bytes = 4096}));
}

}  // namespace
}  // namespace espalier::tree
