// SPDX-License-Identifier: Apache-2.0
#include "tree/host/host_executor.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tree/testing/tree_fixture.hpp"

namespace espalier::tree {
namespace {

TEST(HostExecutor, AWalkAtAnExpiredVersionIsRefused) {
  TreeFixture tree({.node_bytes = 512});
  MapCore& map = tree.map();
  memory::Reclaimer& reclaimer = tree.store().reclaimer;
  const Request get = TreeFixture::request(Op::get, "key");
  tree.put("key", "before");
  const auto held = reclaimer.hold(map, map.clock.released());
  for (int i = 0; i < 200; ++i) tree.put("key", "after" + std::to_string(i));
  for (int i = 0; i < 4; ++i) reclaimer.collect(tree.context().cache);
  const OneAnswer before = tree.run(get, *held);
  EXPECT_TRUE(before.completion.ok);
  EXPECT_EQ(before.value, "before");
  ASSERT_TRUE(reclaimer.expire_oldest());
  const OneAnswer after = tree.run(get, *held);
  EXPECT_FALSE(after.completion.ok);
  EXPECT_EQ(after.completion.error.code, Code::snapshot_expired);
  reclaimer.drop(map, held);
}

}  // namespace
}  // namespace espalier::tree
