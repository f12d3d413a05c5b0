// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/map_object.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>
#include <vector>

#include "catalog/samples.hpp"
#include "kinds/map/testing/map_objects.hpp"
#include "wire/message.hpp"

namespace espalier::tree {
namespace {

TEST_F(MapObjects, FindsAMapByNameAndById) {
  const auto one = create("one", options_);
  const auto two = create("two", {.node_bytes = 1024});
  ASSERT_TRUE(one && two);
  EXPECT_EQ((*one)->name, "one");
  EXPECT_EQ((*two)->options.node_bytes, 1024u);
  EXPECT_EQ(open("one"), *one);
  EXPECT_EQ(find((*two)->id), *two);
  EXPECT_EQ(names(), (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(open("three").error().code, Code::not_found);
  EXPECT_EQ(drop("three").error().code, Code::not_found);
  EXPECT_EQ(find(0), nullptr);
  EXPECT_EQ(find((*two)->id + 1), nullptr);
}

TEST_F(MapObjects, RefusesWhatItCannotMakeAndStaysAsItWas) {
  ASSERT_TRUE(create("one", options_));
  const std::uint64_t in_use = buffers_in_use(store_);
  EXPECT_EQ(create("one", options_).error().code, Code::already_exists);
  EXPECT_EQ(create("two", {.node_bytes = 1000}).error().code, Code::invalid_argument);
  EXPECT_EQ(names(), std::vector<std::string>{"one"});
  EXPECT_EQ(buffers_in_use(store_), in_use);
  EXPECT_TRUE(create("two", options_));
}

TEST_F(MapObjects, NamesHaveOneTo255BytesOfAnyKind) {
  EXPECT_EQ(create("", options_).error().code, Code::invalid_argument);
  EXPECT_EQ(create(std::string(256, 'n'), options_).error().code, Code::invalid_argument);
  EXPECT_EQ(open("").error().code, Code::not_found);
  const std::string longest(255, 'n');
  const std::string odd("\0\xFF\n", 3);
  EXPECT_TRUE(create(longest, options_));
  EXPECT_TRUE(create(odd, options_));
  EXPECT_TRUE(open(longest));
  EXPECT_EQ((*open(odd))->name, odd);
}

TEST_F(MapObjects, ANameIsUsedAgainAndAnIdNever) {
  std::set<std::uint32_t> ids;
  for (int round = 0; round < 10; ++round) {
    const auto made = create("name", options_);
    ASSERT_TRUE(made);
    EXPECT_TRUE(ids.insert((*made)->id).second);
    EXPECT_EQ(drop("name"), *made);
    EXPECT_EQ(find((*made)->id), nullptr);
    EXPECT_EQ(open("name").error().code, Code::not_found);
  }
}

TEST_F(MapObjects, ADroppedMapAnswersUntilItsLastHolderLetsGo) {
  const std::uint64_t in_use = buffers_in_use(store_);
  ThreadContext context(store_, std::move(*store_.epochs.join()), 0);
  {
    MapUser user(context, *create("name", options_));
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(user.put(TreeFixture::numbered(i), "old").ok);
    EXPECT_FALSE(user.map().dropped);
    ASSERT_TRUE(drop("name"));
    EXPECT_TRUE(user.map().dropped);
    // Another map of the same name is another map.
    const auto next = create("name", options_);
    ASSERT_TRUE(next);
    EXPECT_FALSE((*next)->dropped);
    EXPECT_EQ(MapUser(context, *next).get(TreeFixture::numbered(7)), "");
    EXPECT_EQ(user.get(TreeFixture::numbered(7)), "old");
    for (int i = 100; i < 200; ++i) ASSERT_TRUE(user.put(TreeFixture::numbered(i), "new").ok);
    EXPECT_EQ(audit_store(store_), std::vector<std::string>{});
  }
  EXPECT_EQ(store_.objects.list<MapCore>().size(), 1u);
  EXPECT_EQ(audit_store(store_), std::vector<std::string>{});
  ASSERT_TRUE(drop("name"));
  context.cache.flush();
  EXPECT_EQ(buffers_in_use(store_), in_use);
}

TEST_F(MapObjects, TellWhatTheyAreMadeOf) {
  const auto made = *create("one", {.node_bytes = 1024, .log_bytes = 256});
  const std::string text = made->description();
  wire::MapShape shape{};
  ASSERT_EQ(text.size(), sizeof shape);
  std::memcpy(&shape, text.data(), sizeof shape);
  EXPECT_EQ(shape.node_bytes, 1024u);
  EXPECT_EQ(shape.log_bytes, 256u);
  EXPECT_EQ(shape.key_bytes_max, made->geometry.key_bytes_max);
  EXPECT_EQ(made->numbers().entries, 0u);
  EXPECT_EQ(made->numbers().memory_bytes, made->memory_bytes());
  ThreadContext context(store_, std::move(*store_.epochs.join()), 0);
  MapUser user(context, made);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(user.put(TreeFixture::numbered(i), "v").ok);
  EXPECT_EQ(made->numbers().entries, 10u);
}

TEST_F(MapObjects, TellTheirStatisticsAlsoWhereNoPlaceForAReaderIsFree) {
  const auto made = *create("one", {.node_bytes = 1024, .log_bytes = 256});
  {
    ThreadContext context(store_, std::move(*store_.epochs.join()), 0);
    MapUser user(context, made);
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(user.put(TreeFixture::numbered(i), "v").ok);
  }
  std::vector<base::EpochSlot> all;
  while (auto slot = store_.epochs.join()) all.push_back(std::move(*slot));
  catalog::SampleList list;
  made->add_samples(list);
  const std::vector<wire::Sample> samples = list.take();
  const auto value_of = [&](std::string_view name) {
    const auto found = std::ranges::find(samples, name, &wire::Sample::name);
    return found == samples.end() ? 0 : found->value;
  };
  EXPECT_EQ(value_of("items"), 1000u);
  EXPECT_EQ(value_of("height"), made->node(made->root).level() + 1);
  EXPECT_GT(value_of("height"), 1u);
  EXPECT_EQ(value_of("retired_bytes"), store_.reclaimer.waiting(*made, true).bytes);
}

}  // namespace
}  // namespace espalier::tree
