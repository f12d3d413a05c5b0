// SPDX-License-Identifier: Apache-2.0
// Which groups maps may name, and how many a store has.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "espalier/hash_map.hpp"
#include "espalier/map.hpp"
#include "espalier/transaction.hpp"

namespace espalier::test {
namespace {

TEST(Groups, NamesThatNoneHasAreRefused) {
  Store store = *Store::open({.memory_bytes_max = std::uint64_t{128} << 20, .huge_pages = false});
  MapOptions options;
  options.group = std::string(256, 'g');
  EXPECT_EQ(store.create_map("m", options).error().code, Code::invalid_argument);
  HashMapOptions hashed;
  hashed.group = options.group;
  EXPECT_EQ(store.create_hash_map("h", hashed).error().code, Code::invalid_argument);
  options.group = hashed.group = std::string(255, 'g');
  options.versions = hashed.versions = false;
  EXPECT_EQ(store.create_map("m", options).error().code, Code::invalid_argument);
  EXPECT_EQ(store.create_hash_map("h", hashed).error().code, Code::invalid_argument);
  options.versions = hashed.versions = true;
  EXPECT_TRUE(store.create_map("m", options));
  EXPECT_TRUE(store.create_hash_map("h", hashed));
  EXPECT_TRUE(store.transact(Transaction().put("m", "k", "1").put("h", "k", "1")));
  EXPECT_EQ(store.open_map("m")->options().group, options.group);
  EXPECT_EQ(store.hash_maps()->front().options, hashed);
}

TEST(Groups, AStoreHas64AndADropMakesRoom) {
  Store store = *Store::open({.memory_bytes_max = std::uint64_t{512} << 20, .huge_pages = false});
  MapOptions options{.node_bytes = 512, .log_bytes = 128};
  for (int i = 0; i < 64; ++i) {
    options.group = "group" + std::to_string(i);
    ASSERT_TRUE(store.create_map(options.group, options)) << i;
  }
  options.group = "one more";
  const auto refused = store.create_map("m", options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::too_many_participants);
  EXPECT_NE(message(refused.error()).find("64 groups"), std::string::npos);
  EXPECT_FALSE(store.open_map("m"));
  ASSERT_TRUE(store.drop_map("group9"));
  ASSERT_TRUE(store.create_map("m", options));
  EXPECT_TRUE(store.open_map("m")->put("k", "1"));
  EXPECT_EQ((*store.open_map("m")->get("k"))->value, "1");
}

}  // namespace
}  // namespace espalier::test
