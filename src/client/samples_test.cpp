// SPDX-License-Identifier: Apache-2.0
// Samples of the objects of a store in this process; nodes have tests of their own.
#include <gtest/gtest.h>

#include <algorithm>

#include "channel/objects.hpp"
#include "client/store_impl.hpp"
#include "espalier/map.hpp"
#include "espalier/sequencer.hpp"
#include "wire/samples.hpp"

namespace espalier::client {
namespace {

TEST(EmbeddedSamples, TellOfItsObjects) {
  StoreOptions options;
  options.memory_bytes_max = std::uint64_t{64} << 20;
  options.huge_pages = false;
  Store store = *Store::open(options);
  Map map = *store.create_map("m");
  ASSERT_TRUE(map.put("a", "1"));
  ASSERT_TRUE(store.create_sequencer("s"));
  wire::SamplesWanted wanted{};
  wanted.objects_max = 8;
  const auto all = channel::samples(*StoreImpl::of(store).channel(), wanted);
  ASSERT_TRUE(all) << message(all.error());
  EXPECT_EQ(all->count, 2u);
  const auto found = std::ranges::find(all->objects, "m", &wire::SampledObject::name);
  ASSERT_NE(found, all->objects.end());
  EXPECT_EQ(found->kind_name, "map");
  const auto items = std::ranges::find(found->samples, "items", &wire::Sample::name);
  ASSERT_NE(items, found->samples.end());
  EXPECT_EQ(items->value, 1u);
  const auto one = channel::samples(*StoreImpl::of(store).channel(), wanted, "s");
  ASSERT_TRUE(one && one->objects.size() == 1);
  EXPECT_EQ(one->objects.front().kind, ObjectKind::sequencer);
  wanted.kind = static_cast<std::uint8_t>(ObjectKind::hash);
  EXPECT_EQ(channel::samples(*StoreImpl::of(store).channel(), wanted)->count, 0u);
}

}  // namespace
}  // namespace espalier::client
