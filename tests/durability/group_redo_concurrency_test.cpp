// SPDX-License-Identifier: Apache-2.0
// Groups of maps with a clock each, restored from records by several threads: the same groups, and
// each item with its version.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "catalog/testing/recording_sink.hpp"
#include "engine/parallel_redo.hpp"
#include "engine/services.hpp"
#include "kinds/hash/hash_map.hpp"
#include "kinds/map/testing/map_objects.hpp"
#include "store/clock_groups.hpp"
#include "store/transaction.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {
namespace {

constexpr const char* kGroups[] = {"one", "two", "three"};
constexpr std::uint64_t kGroupKeys = 30;

/// A store with an ordered map and a hash map in each group.
struct GroupedStore {
  tree::StoreCore core = tree::make_store();
  hash::HashStore& hash_maps = hash::hash_store_of(core.catalog);
  hash::HashThread thread = *hash::HashThread::join(hash_maps);
  tree::ThreadContext context{core, std::move(*core.epochs.join()), 0};
  offload::Services services{core, std::uint64_t{64} << 20};

  void make() {
    for (const std::string group : kGroups) {
      ASSERT_TRUE(tree::create_map(core, group + "m",
                                   {.node_bytes = 512, .log_bytes = 128, .group = group}));
      ASSERT_TRUE(hash::create_hash_map(hash_maps, group + "h", {.partitions = 2, .group = group}));
    }
  }
  [[nodiscard]] std::shared_ptr<tree::MapCore> map(const std::string& group) const {
    return *core.catalog.open<tree::MapCore>(group + "m");
  }
  [[nodiscard]] std::shared_ptr<hash::HashMap> hash(const std::string& group) const {
    return *core.catalog.open<hash::HashMap>(group + "h");
  }
  /// Of each map its group, and its keys with values and versions.
  std::map<std::string, std::string> contents() {
    std::map<std::string, std::string> all;
    for (const std::string group : kGroups) {
      tree::MapUser user(context, map(group));
      std::string ordered = user.map().options.group;
      std::string hashed = hash(group)->options().group;
      hash::HashReader reader(*hash(group), thread);
      for (std::uint64_t i = 0; i < kGroupKeys; ++i) {
        const std::string key = std::to_string(i);
        ordered += " " + user.get(key) + "@" + std::to_string(user.version(key));
        const hash::HashAnswer found = reader.get(key);
        hashed += " " + std::string(found.value) + "@" + std::to_string(found.version);
      }
      all.emplace(group + "m", std::move(ordered));
      all.emplace(group + "h", std::move(hashed));
    }
    return all;
  }
};

/// Writes in one group: to one of its maps, or to both in one transaction.
void write_some(GroupedStore& store, const std::string& group, base::Random& random) {
  const std::string key = std::to_string(random.below(kGroupKeys));
  const std::string value = std::to_string(random.below(1000));
  const std::uint64_t what = random.below(5);
  if (what < 2) {
    ASSERT_TRUE(tree::MapUser(store.context, store.map(group)).put(key, value).ok);
  } else if (what < 4) {
    ASSERT_TRUE(store.hash(group)->put(store.thread, key, value));
  } else {
    std::vector<store::ObjectSteps> objects;
    for (const std::string& name : {group + "m", group + "h"}) {
      const auto entry = store.core.catalog.find_any(name);
      objects.push_back({entry->object, entry->id, {}, {}});
      objects.back().steps.push_back({catalog::StepKind::put, key, value});
      objects.back().numbers.push_back(static_cast<std::uint32_t>(objects.size() - 1));
    }
    const auto done = store::transact(store.core, objects);
    ASSERT_TRUE(done) << message(done.error());
  }
}

TEST(GroupRedoConcurrency, ThreadsMakeTheSameGroupsWithTheSameVersions) {
  const std::uint64_t seed = seed_from_environment(831);
  SCOPED_TRACE(seed_text(seed));
  base::Random random(seed);
  catalog::RecordingSink sink;
  GroupedStore store;
  store.core.catalog.record_to(&sink);
  ASSERT_NO_FATAL_FAILURE(store.make());
  for (std::uint64_t i = 0; i < scaled(2000); ++i) {
    ASSERT_NO_FATAL_FAILURE(write_some(store, kGroups[random.below(3)], random));
  }
  store.core.catalog.record_to(nullptr);
  const auto wanted = store.contents();
  for (const std::uint32_t threads : {1U, 2U, 4U}) {
    SCOPED_TRACE(threads);
    GroupedStore other;
    auto redo = offload::ParallelRedo::start(
        {.services = other.services, .own = {}, .threads = threads, .piece_bytes = 300});
    ASSERT_TRUE(redo);
    EXPECT_EQ((*redo)->threads(), threads);
    for (const std::string_view record : sink.records()) {
      ASSERT_TRUE((*redo)->apply(std::as_bytes(std::span(record))));
    }
    ASSERT_TRUE((*redo)->finish());
    redo->reset();
    EXPECT_EQ(other.contents(), wanted);
    EXPECT_EQ(other.core.groups->size(), std::size(kGroups));
    for (const std::string group : kGroups) {
      EXPECT_EQ(&other.map(group)->clock, &other.hash(group)->clock());
      EXPECT_EQ(other.map(group)->clock.taken(), store.map(group)->clock.taken());
      EXPECT_EQ(other.map(group)->clock.released(), store.map(group)->clock.released());
    }
    EXPECT_NE(&other.map("one")->clock, &other.map("two")->clock);
    EXPECT_EQ(tree::audit_store(other.core), std::vector<std::string>{});
  }
}

// At each place of a log there are no more groups than there were then, however many there were in
// total: a group without maps leaves its place to others.
TEST(GroupRedoConcurrency, MoreGroupsThanThereMayBeComeOneAfterTheOther) {
  catalog::RecordingSink sink;
  GroupedStore store;
  store.core.catalog.record_to(&sink);
  constexpr std::size_t kGroupsMade = 3 * store::ClockGroups::kGroupsMax / 2;
  for (std::size_t i = 0; i < kGroupsMade; ++i) {
    const std::string name = "group" + std::to_string(i);
    ASSERT_TRUE(tree::create_map(store.core, name, {.node_bytes = 512, .group = name})) << i;
    if (i % 4 != 0) {
      ASSERT_TRUE(store.core.catalog.drop<tree::MapCore>(name)) << i;
    }
  }
  store.core.catalog.record_to(nullptr);
  EXPECT_EQ(store.core.groups->size(), kGroupsMade / 4);
  GroupedStore other;
  auto redo = offload::ParallelRedo::start({.services = other.services, .own = {}, .threads = 2});
  ASSERT_TRUE(redo);
  for (const std::string_view record : sink.records()) {
    ASSERT_TRUE((*redo)->apply(std::as_bytes(std::span(record))));
  }
  ASSERT_TRUE((*redo)->finish());
  EXPECT_EQ(other.core.groups->size(), kGroupsMade / 4);
  EXPECT_EQ(other.core.catalog.names(), store.core.catalog.names());
}

}  // namespace
}  // namespace espalier::test
