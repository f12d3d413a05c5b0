// SPDX-License-Identifier: Apache-2.0
#include "tree/write/catalog.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "tree/testing/tree_fixture.hpp"

namespace espalier::tree {
namespace {

StoreCore make_store() {
  constexpr std::uint64_t kBytes = std::uint64_t{256} << 20;
  return {std::move(*memory::Region::reserve({.bytes_max = kBytes, .huge_pages = false})), 16};
}

/// Reads and writes a map, which it holds.
class Holder {
 public:
  Holder(ThreadContext& context, std::shared_ptr<MapCore> map)
      : map_(std::move(map)),
        executor_(context, *map_, 1, [this](std::uint32_t, base::ReadyQueue& queue) {
          return HostAccess(map_->base, queue, false, &kNever);
        }) {}

  Completion put(std::string_view key, std::string_view value) {
    return run(TreeFixture::request(Op::put, key, value)).completion;
  }
  std::string get(std::string_view key) { return run(TreeFixture::request(Op::get, key)).value; }
  MapCore& map() { return *map_; }

 private:
  OneAnswer run(const Request& request) {
    OneAnswer answer;
    executor_.submit({&request, 1}, answer);
    executor_.drain();
    return answer;
  }

  static constexpr bool kNever = false;
  std::shared_ptr<MapCore> map_;
  HostExecutor<HostAccess> executor_;
};

std::uint64_t buffers_in_use(const StoreCore& store) {
  std::uint64_t all = 0;
  for (memory::SizeClass cls = 0; cls < memory::kClasses; ++cls)
    all += store.pool.stats(cls).in_use;
  return all;
}

class CatalogTest : public ::testing::Test {
 protected:
  StoreCore store_ = make_store();
  Catalog catalog_{store_};
  const MapOptions options_{.node_bytes = 512};
};

TEST_F(CatalogTest, FindsAMapByNameAndById) {
  const auto one = catalog_.create("one", options_);
  const auto two = catalog_.create("two", {.node_bytes = 1024});
  ASSERT_TRUE(one && two);
  EXPECT_EQ((*one)->name, "one");
  EXPECT_EQ((*two)->options.node_bytes, 1024u);
  EXPECT_EQ(catalog_.open("one"), *one);
  EXPECT_EQ(catalog_.find((*two)->id), *two);
  EXPECT_EQ(catalog_.names(), (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(catalog_.open("three").error().code, Code::not_found);
  EXPECT_EQ(catalog_.drop("three").error().code, Code::not_found);
  EXPECT_EQ(catalog_.find(0), nullptr);
  EXPECT_EQ(catalog_.find((*two)->id + 1), nullptr);
}

TEST_F(CatalogTest, RefusesWhatItCannotMakeAndStaysAsItWas) {
  ASSERT_TRUE(catalog_.create("one", options_));
  const std::uint64_t in_use = buffers_in_use(store_);
  EXPECT_EQ(catalog_.create("one", options_).error().code, Code::already_exists);
  EXPECT_EQ(catalog_.create("two", {.node_bytes = 1000}).error().code, Code::invalid_argument);
  EXPECT_EQ(catalog_.names(), std::vector<std::string>{"one"});
  EXPECT_EQ(buffers_in_use(store_), in_use);
  EXPECT_TRUE(catalog_.create("two", options_));
}

TEST_F(CatalogTest, NamesHaveOneTo255BytesOfAnyKind) {
  EXPECT_EQ(catalog_.create("", options_).error().code, Code::invalid_argument);
  EXPECT_EQ(catalog_.create(std::string(256, 'n'), options_).error().code, Code::invalid_argument);
  EXPECT_EQ(catalog_.open("").error().code, Code::not_found);
  const std::string longest(255, 'n');
  const std::string odd("\0\xFF\n", 3);
  EXPECT_TRUE(catalog_.create(longest, options_));
  EXPECT_TRUE(catalog_.create(odd, options_));
  EXPECT_TRUE(catalog_.open(longest));
  EXPECT_EQ((*catalog_.open(odd))->name, odd);
}

TEST_F(CatalogTest, ANameIsUsedAgainAndAnIdNever) {
  std::set<std::uint32_t> ids;
  for (int round = 0; round < 10; ++round) {
    const auto made = catalog_.create("name", options_);
    ASSERT_TRUE(made);
    EXPECT_TRUE(ids.insert((*made)->id).second);
    EXPECT_EQ(catalog_.drop("name"), *made);
    EXPECT_EQ(catalog_.find((*made)->id), nullptr);
    EXPECT_EQ(catalog_.open("name").error().code, Code::not_found);
  }
}

TEST_F(CatalogTest, ADroppedMapAnswersUntilItsLastHolderLetsGo) {
  const std::uint64_t in_use = buffers_in_use(store_);
  ThreadContext context(store_, std::move(*store_.epochs.join()), 0);
  {
    Holder holder(context, *catalog_.create("name", options_));
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(holder.put(TreeFixture::numbered(i), "old").ok);
    EXPECT_FALSE(holder.map().dropped);
    ASSERT_TRUE(catalog_.drop("name"));
    EXPECT_TRUE(holder.map().dropped);
    // Another map of the same name is another map.
    const auto next = catalog_.create("name", options_);
    ASSERT_TRUE(next);
    EXPECT_FALSE((*next)->dropped);
    EXPECT_EQ(Holder(context, *next).get(TreeFixture::numbered(7)), "");
    EXPECT_EQ(holder.get(TreeFixture::numbered(7)), "old");
    for (int i = 100; i < 200; ++i) ASSERT_TRUE(holder.put(TreeFixture::numbered(i), "new").ok);
    EXPECT_EQ(audit_store(store_), std::vector<std::string>{});
  }
  EXPECT_EQ(store_.maps.list().size(), 1u);
  EXPECT_EQ(audit_store(store_), std::vector<std::string>{});
  ASSERT_TRUE(catalog_.drop("name"));
  context.cache.flush();
  EXPECT_EQ(buffers_in_use(store_), in_use);
}

class CatalogConcurrency : public CatalogTest {
 protected:
  static constexpr std::uint32_t kThreads = 3;

  template <class Work>
  static void in_threads(const Work& work) {
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < kThreads; ++t) threads.emplace_back([&work, t] { work(t); });
    for (std::thread& thread : threads) thread.join();
  }
};

TEST_F(CatalogConcurrency, OfThoseWhoMakeOrDropANameOneSucceeds) {
  std::mutex mutex;
  std::set<std::uint32_t> ids;
  std::atomic<std::int64_t> made{0};
  std::atomic<std::int64_t> dropped{0};
  const std::uint64_t seed = base::seed_from_environment(91);
  in_threads([&](std::uint32_t thread) {
    base::Random random(seed + thread);
    for (int round = 0; round < 300; ++round) {
      const std::string name(1, static_cast<char>('a' + random.below(3)));
      if (const auto core = catalog_.create(name, options_)) {
        ++made;
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(ids.insert((*core)->id).second);
      }
      if (const auto core = catalog_.open(name)) {
        EXPECT_EQ((*core)->name, name);
        const auto same = catalog_.find((*core)->id);
        EXPECT_TRUE(same == nullptr ? (*core)->dropped.load() : same == *core);
      }
      if (const auto core = catalog_.drop(name)) {
        ++dropped;
        EXPECT_TRUE((*core)->dropped);
      }
    }
  });
  EXPECT_EQ(made - dropped, static_cast<std::int64_t>(catalog_.names().size()));
  EXPECT_EQ(store_.maps.list().size(), catalog_.names().size());
  EXPECT_EQ(audit_store(store_), std::vector<std::string>{});
}

// Each thread works on the map that has the name and, now and then, drops it under the others,
// who find their own map whole until they look for it again.
TEST_F(CatalogConcurrency, AMapIsDroppedUnderThoseWhoUseIt) {
  const std::uint64_t in_use = buffers_in_use(store_);
  in_threads([&](std::uint32_t thread) {
    ThreadContext context(store_, std::move(*store_.epochs.join()), thread);
    for (int round = 0; round < 60; ++round) {
      auto core = catalog_.create("name", options_);
      if (!core) core = catalog_.open("name");
      if (!core) continue;
      Holder holder(context, std::move(*core));
      for (int i = 0; i < 100 && (i < 20 || !holder.map().dropped); ++i) {
        const std::string key = TreeFixture::numbered(i) + std::to_string(thread);
        ASSERT_TRUE(holder.put(key, key).ok);
        ASSERT_EQ(holder.get(key), key);
      }
      if (round % 4 == 0) (void)catalog_.drop("name");
    }
  });
  EXPECT_EQ(audit_store(store_), std::vector<std::string>{});
  (void)catalog_.drop("name");
  EXPECT_EQ(buffers_in_use(store_), in_use);
}

}  // namespace
}  // namespace espalier::tree
