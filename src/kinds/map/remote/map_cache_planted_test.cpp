// SPDX-License-Identifier: Apache-2.0
// A cache that keeps what it has of a node when the node has moved is noticed.
#include <gtest/gtest.h>

#include <vector>

#include "kinds/map/remote/map_cache.hpp"
#include "kinds/map/remote/testing/feed_table.hpp"

namespace espalier::place {
namespace {

bool is_kept_when_it_has_moved() {
  FeedTable table(8);
  tree::MapView view = table.view();
  view.geometry = tree::Geometry::of({.node_bytes = 512});
  NodeCache nodes(1 << 20);
  MapCache cache(nodes, view, false);
  const wire::Lid lid = table.lid(4);
  table.move(4, 1);
  const wire::Ref before = table.table().get(lid);
  cache.keep_place(lid, before);
  nodes.keep(before, 0, std::vector<std::byte>(NodeCache::kChunkBytes, std::byte{7}));
  EXPECT_NE(nodes.find(before, 0), nullptr);
  table.move(4, 2);
  EXPECT_TRUE(cache.moved({lid, table.table().get(lid), 2}));
  return nodes.find(before, 0) != nullptr;
}

TEST(MapCachePlanted, AnEntryThatOutlivesItsMappingIsNoticed) {
  EXPECT_FALSE(is_kept_when_it_has_moved());
  {
    const base::Planted planted(tree::Bug::moved_node_kept);
    EXPECT_TRUE(is_kept_when_it_has_moved());
  }
  EXPECT_FALSE(is_kept_when_it_has_moved());
}

}  // namespace
}  // namespace espalier::place
