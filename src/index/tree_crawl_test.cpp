// SPDX-License-Identifier: Apache-2.0
#include "index/tree_crawl.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "dataplane/compiler.hpp"
#include "dataplane/key_number.hpp"
#include "index/testing/leaf_of.hpp"
#include "kinds/map/testing/map_objects.hpp"

namespace espalier::place {
namespace {

constexpr std::uint64_t kBase = std::uint64_t{1} << 50;

class CrawlTest : public ::testing::Test {
 protected:
  void make(const MapOptions& options) {
    map_ = *tree::create_map(store_, "map", options);
    user_ = std::make_unique<tree::MapUser>(context_, map_);
  }
  void put(const std::string& key) { user_->put(key, "value of " + key); }
  Result<dataplane::TreeImage> image(std::string_view prefix = "") {
    LocalRegion region(store_.region.at(0));
    const auto tree = crawl(*map_, region);
    if (!tree) return std::unexpected(tree.error());
    return tree->image(prefix, kBase);
  }
  /// The leaf of a key, found by the host.
  std::uint64_t leaf_of(const std::string& key) {
    return kBase + leaf_offset_of(*map_, context_, key);
  }

  tree::StoreCore store_ = tree::make_store();
  tree::ThreadContext context_{store_, *store_.epochs.join(), 0};
  std::shared_ptr<tree::MapCore> map_;
  std::unique_ptr<tree::MapUser> user_;
};

TEST_F(CrawlTest, TablesOfTheWholeTreeLeadToTheLeavesThatTheHostFinds) {
  make({.node_bytes = 512, .log_bytes = 64});
  for (int i = 0; i < 3000; ++i) put("user" + std::to_string(100'000 + i * 7));
  const auto tree = image("user");
  ASSERT_TRUE(tree) << message(tree.error());
  const auto tables =
      dataplane::compile(*tree, {.ranges = 5000, .sets = 8, .nodes_per_set = 5000}).tables;
  ASSERT_TRUE(dataplane::check(tables));
  for (int i = 0; i < 3000; ++i) {
    const std::string key = "user" + std::to_string(100'000 + i * 7);
    ASSERT_EQ(dataplane::find(tables, dataplane::key_number("user", key)).address, leaf_of(key))
        << key;
  }
}

// Keys that agree in all 8 bytes of their numbers stay above their leaves.
TEST_F(CrawlTest, KeysThatTieMakeTablesThatCanBeChecked) {
  make({.node_bytes = 512, .log_bytes = 64});
  base::Random random(base::seed_from_environment(11));
  const std::string long_part(40, 'x');
  for (int i = 0; i < 2000; ++i) {
    put("prefix" + std::to_string(random.below(5)) + long_part + std::to_string(random.below(900)));
  }
  for (const std::uint64_t ranges : {1u, 10u, 100u, 5000u}) {
    const auto tree = image("prefix");
    ASSERT_TRUE(tree);
    EXPECT_TRUE(dataplane::check(
        dataplane::compile(*tree, {.ranges = ranges, .sets = 3, .nodes_per_set = 50}).tables));
  }
}

TEST_F(CrawlTest, AnEmptyMapIsALeaf) {
  make({});
  const auto tree = image();
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->size(), 1u);
  EXPECT_TRUE(tree->is_leaf(tree->root()));
  EXPECT_EQ(tree->address(tree->root()), leaf_of("any"));
}

/// A region with randomly wrong bytes.
class LyingRegion final : public RegionSource {
 public:
  LyingRegion(const std::byte* memory, std::uint64_t bytes, std::uint64_t seed, double share)
      : memory_(memory), bytes_(bytes), random_(seed), share_(share) {}
  Result<void> read(std::span<const Want> wanted) override {
    for (const Want& want : wanted) {
      EXPECT_LE(want.offset + want.into.size(), bytes_);
      std::memcpy(want.into.data(), memory_ + want.offset, want.into.size());
      if (!random_.chance(share_)) continue;
      for (int i = 0; i < 8; ++i) {
        want.into[random_.below(want.into.size())] = static_cast<std::byte>(random_());
      }
      if (random_.chance(1.0 / 4)) {  // of another node, or no node
        const std::uint64_t other = random_.below((bytes_ - want.into.size()) / 512) * 512;
        std::memcpy(want.into.data(), memory_ + other, want.into.size());
      }
    }
    return {};
  }

 private:
  const std::byte* memory_;
  std::uint64_t bytes_;
  base::Random random_;
  double share_;
};

TEST_F(CrawlTest, WhateverTheBytesSayTablesCanBeMadeOrItIsRefused) {
  make({.node_bytes = 512, .log_bytes = 64});
  for (int i = 0; i < 4000; ++i) put("user" + std::to_string(100'000 + i * 7));
  const std::uint64_t seed = base::seed_from_environment(1);
  std::uint64_t made = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    LyingRegion region(store_.region.at(0), store_.region.bytes(), seed + i,
                       i % 3 == 0 ? 0.9 : 0.05);
    const auto tree = crawl(*map_, region);
    if (!tree) continue;
    ++made;
    const auto tables = dataplane::compile(tree->image("user", kBase),
                                           {.ranges = 1 + i * 3, .sets = 3, .nodes_per_set = 60})
                            .tables;
    ASSERT_TRUE(dataplane::check(tables)) << seed + i;
  }
  EXPECT_GT(made, 100u);
}

/// A source that ends after some reads.
class EndingRegion final : public RegionSource {
 public:
  EndingRegion(const std::byte* memory, int reads) : inner_(memory), left_(reads) {}
  Result<void> read(std::span<const Want> wanted) override {
    if (left_-- <= 0) return fail(Code::connection_lost);
    return inner_.read(wanted);
  }

 private:
  LocalRegion inner_;
  int left_;
};

TEST_F(CrawlTest, ALostConnectionIsSaid) {
  make({.node_bytes = 512, .log_bytes = 64});
  for (int i = 0; i < 1000; ++i) put("user" + std::to_string(100'000 + i * 7));
  int reads = 0;
  for (;; ++reads) {
    EndingRegion region(store_.region.at(0), reads);
    const auto tree = crawl(*map_, region);
    if (tree) break;
    EXPECT_EQ(tree.error().code, Code::connection_lost);
  }
  EXPECT_GT(reads, 3);
}

}  // namespace
}  // namespace espalier::place
