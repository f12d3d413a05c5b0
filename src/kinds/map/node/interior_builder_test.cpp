// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/node/interior_builder.hpp"

#include <gtest/gtest.h>

#include <set>

#include "kinds/map/testing/tree_fixture.hpp"

namespace espalier::tree {
namespace {

std::vector<Child> children_of(const std::vector<std::string>& separators) {
  std::vector<Child> children;
  for (std::size_t i = 0; i < separators.size(); ++i) {
    children.push_back({separators[i], static_cast<wire::Lid>(5000 + i)});
  }
  return children;
}

// Takes separators until the next would not fit.
std::vector<std::string> as_many_as_fit(const Geometry& g, base::Random& random,
                                        std::uint32_t bytes_max) {
  std::set<std::string> keys;
  while (keys.size() < 2000) keys.insert(random_key(random, bytes_max));
  std::vector<std::string> separators{""};
  for (const std::string& key : keys) {
    separators.push_back(key);
    if (!interior_fits(g, children_of(separators), "", "")) {
      separators.pop_back();
      break;
    }
  }
  return separators;
}

TEST(InteriorBuilder, WhatWasBuiltIsReadBack) {
  base::Random random(base::seed_from_environment(51));
  for (const MapOptions& options : all_geometries()) {
    const Geometry g = Geometry::of(options);
    for (const std::uint32_t bytes_max : {12u, g.key_bytes_max}) {
      const auto separators = as_many_as_fit(g, random, bytes_max);
      const auto children = children_of(separators);
      ASSERT_GE(children.size(), 4u);
      NodeBuffer buffer(g);
      NodeFrame frame;
      frame.lid = 4099;
      build_interior(buffer.data(), g, 3, children, frame);
      const NodeView node = buffer.view();
      EXPECT_FALSE(node.leaf());
      EXPECT_EQ(node.level(), 3u);
      EXPECT_EQ(node.lid(), 4099u);
      EXPECT_EQ(node.children(), children.size());
      std::vector<Child> gathered;
      gather_children(node, gathered);
      ASSERT_EQ(gathered.size(), children.size());
      for (std::size_t i = 0; i < children.size(); ++i) {
        ASSERT_EQ(gathered[i].separator, children[i].separator);
        ASSERT_EQ(gathered[i].lid, children[i].lid);
      }
    }
  }
}

TEST(InteriorBuilder, FencesKeepTheirRoom) {
  const Geometry g = Geometry::of({.node_bytes = 512});
  base::Random random(base::seed_from_environment(52));
  auto separators = as_many_as_fit(g, random, 8);
  const std::string low(g.key_bytes_max, '\0');
  const std::string high(g.key_bytes_max, '\xFF');
  EXPECT_FALSE(interior_fits(g, children_of(separators), low, high));
  while (!interior_fits(g, children_of(separators), low, high)) separators.pop_back();
  NodeBuffer buffer(g);
  NodeFrame frame;
  frame.low = low;
  frame.high = high;
  build_interior(buffer.data(), g, 1, children_of(separators), frame);
  EXPECT_EQ(buffer.view().low_fence(), low);
  EXPECT_EQ(buffer.view().high_fence(), high);
  EXPECT_EQ(buffer.view().separator(static_cast<std::uint32_t>(separators.size()) - 1),
            separators.back());
}

TEST(InteriorBuilder, HeadsOrderAsSeparatorsDo) {
  base::Random random(base::seed_from_environment(53));
  const Geometry g = Geometry::of({});
  const auto separators = as_many_as_fit(g, random, 20);
  NodeBuffer buffer(g);
  build_interior(buffer.data(), g, 1, children_of(separators), {});
  const NodeView node = buffer.view();
  std::uint32_t before = 0;
  for (std::uint32_t i = 0; i < node.groups() * 16; ++i) {
    const auto head =
        base::load_plain<std::uint32_t>(buffer.data() + node.group_offset(i / 16) + 4 * (i % 16));
    ASSERT_GE(head, before);
    ASSERT_EQ(head == ~0u, i >= separators.size()) << "all ones mark what is unused, and only that";
    before = head;
  }
}

// Golden bytes: what docs/formats/node.md says of the prefix.
TEST(InteriorBuilder, KeepsWhatItsSeparatorsBeginWith) {
  using namespace std::string_literals;
  const Geometry g = Geometry::of({.node_bytes = 512});
  const std::vector<std::string> separators{"user:", "user:0012", "user:0013", "user:0019x"};
  NodeFrame frame;
  frame.low = "user:";
  frame.high = "usher";
  NodeBuffer buffer(g);
  build_interior(buffer.data(), g, 1, children_of(separators), frame);
  const auto bytes = [&](std::size_t at, std::size_t count) {
    return std::string(reinterpret_cast<const char*>(buffer.data()) + at, count);
  };
  ASSERT_EQ(g.prefix_begin, 136u);
  ASSERT_EQ(g.groups_begin, 192u);
  EXPECT_EQ(bytes(48, 8), "\0\0\0\0\0\0\2\0"s);                  // both fences begin with "us"
  EXPECT_EQ(bytes(60, 2), "\x08\0"s);                            // prefix_bytes
  EXPECT_EQ(bytes(136, 56), "er:001"s + std::string(50, '\0'));  // all separators with "user:001"
  EXPECT_EQ(bytes(40, 8), "\0\0\0\0\0\0\x44\x2E"s);              // key_prefix_base
  EXPECT_EQ(NodeHead::read(buffer.data()).prefix_bytes(), 8u);
  EXPECT_EQ(NodeHead::read(buffer.data()).fences_share(), 2u);
}

TEST(InteriorBuilder, ItsPrefixIsAsLongAsThereIsRoom) {
  for (const MapOptions& options : all_geometries()) {
    const Geometry g = Geometry::of(options);
    for (const std::size_t shared : {std::size_t{1}, std::size_t{8}, std::size_t{24}}) {
      const std::string common(shared, 'c');
      const std::vector<std::string> separators{"", common + "a", common + "b", common + "c"};
      NodeBuffer buffer(g);
      build_interior(buffer.data(), g, 1, children_of(separators), {});
      const NodeHead head = NodeHead::read(buffer.data());
      EXPECT_EQ(head.prefix_bytes(), std::min<std::size_t>(shared, g.prefix_room()));
      EXPECT_EQ(head.fences_share(), 0u);
    }
  }
}

TEST(ShortestSeparator, IsTheShortestKeyBetween) {
  base::Random random(base::seed_from_environment(54));
  for (int round = 0; round < 3000; ++round) {
    std::string left = random_key(random, 12);
    std::string right = random_key(random, 12);
    if (left == right) continue;
    if (left > right) std::swap(left, right);
    const std::string_view separator = shortest_separator(left, right);
    ASSERT_LT(left, separator);
    ASSERT_LE(separator, right);
    ASSERT_LE(separator.substr(0, separator.size() - 1), std::string_view(left))
        << "no shorter one";
  }
}

}  // namespace
}  // namespace espalier::tree
