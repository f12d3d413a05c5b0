// SPDX-License-Identifier: Apache-2.0
// Which nodes get room.
#include "kinds/map/remote/map_cache.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "kinds/map/format/node.hpp"
#include "kinds/map/remote/testing/feed_table.hpp"

namespace espalier::place {
namespace {

constexpr std::uint32_t kChunk = NodeCache::kChunkBytes;
constexpr std::uint32_t kNodeBytes = 4 * kChunk;

struct Scene {
  static tree::MapView view_of(const FeedTable& table) {
    tree::MapView view = table.view();
    view.geometry = tree::Geometry::of({.node_bytes = kNodeBytes});
    return view;
  }
  Scene() : image(kNodeBytes, std::byte{7}) {
    table.move(4, 1);
    ref = table.table().get(table.lid(4));
    wire::NodeHeader header{};
    header.superseded = wire::kLive;
    header.lid = table.lid(4);
    std::memcpy(image.data(), &header, sizeof header);
  }
  [[nodiscard]] bool has(std::uint32_t chunk) { return nodes.find(ref, chunk) != nullptr; }

  FeedTable table{8};
  const tree::MapView view = view_of(table);
  NodeCache nodes{1 << 20};
  MapCache cache{nodes, view, false};
  wire::Ref ref{};
  std::vector<std::byte> image;
};

// What was read of a node by itself is as good as lost: no way down begins in the middle of it.
TEST(MapCache, ANodeGetsRoomWhenItsHeaderWasMissed) {
  Scene scene;
  scene.cache.keep_node(scene.ref, scene.image.data(), kChunk, kNodeBytes);
  scene.cache.keep_piece(scene.ref, kChunk, std::span(scene.image).subspan(kChunk, kChunk));
  for (std::uint32_t chunk = 0; chunk < 4; ++chunk) EXPECT_FALSE(scene.has(chunk)) << chunk;

  scene.cache.keep_node(scene.ref, scene.image.data(), 0, kChunk + 1);
  EXPECT_TRUE(scene.has(0));
  EXPECT_FALSE(scene.has(1)) << "only a byte of it was read";

  scene.cache.keep_piece(scene.ref, kChunk, std::span(scene.image).subspan(kChunk, kChunk));
  EXPECT_TRUE(scene.has(1));
  scene.cache.keep_node(scene.ref, scene.image.data(), 2 * kChunk, kNodeBytes);
  EXPECT_TRUE(scene.has(2));
  EXPECT_TRUE(scene.has(3));
}

TEST(MapCache, ANodeThatWasReplacedGetsNone) {
  Scene scene;
  const std::uint64_t superseded = 9;
  std::memcpy(scene.image.data() + offsetof(wire::NodeHeader, superseded), &superseded,
              sizeof superseded);
  scene.cache.keep_node(scene.ref, scene.image.data(), 0, kNodeBytes);
  EXPECT_FALSE(scene.has(0));
  EXPECT_FALSE(scene.cache.place(scene.table.lid(4)));
}

}  // namespace
}  // namespace espalier::place
