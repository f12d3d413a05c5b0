// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "catalog/testing/some_objects.hpp"

namespace espalier::catalog {
namespace {

/// What one thread does to the few shared names, and what it must see each time.
class Rival {
 public:
  Rival(SomeCatalog& some, std::uint64_t seed) : some_(some), random_(seed) {}

  void run(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      const std::string name(1, static_cast<char>('a' + random_.below(3)));
      switch (random_.below(6)) {
        case 0: make<SomeMap>(name); break;
        case 1: make<SomeTable>(name); break;
        case 2: look<SomeMap>(name); break;
        case 3: look<SomeTable>(name); break;
        case 4: remove<SomeMap>(name); break;
        default: remove<SomeTable>(name); break;
      }
      if (round % 16 == 0) look_at_all();
    }
  }

  std::vector<std::uint32_t> ids;  // of its objects
  int made = 0;
  int dropped = 0;

 private:
  template <class T>
  void make(const std::string& name) {
    const auto object = some_.create<T>(name);
    if (!object) {
      EXPECT_EQ(object.error().code, Code::already_exists);
      EXPECT_NE(object.error().detail, 0u);
      return;
    }
    ++made;
    ids.push_back((*object)->id);
    EXPECT_EQ((*object)->name, name);
  }
  template <class T>
  void look(const std::string& name) {
    const auto object = some_.catalog.open<T>(name);
    if (!object) {
      const auto other = static_cast<std::uint32_t>(T::kKind == ObjectKind::map ? ObjectKind::table
                                                                                : ObjectKind::map);
      const bool wrong_kind = object.error() == Error{Code::wrong_kind, 0, other};
      EXPECT_TRUE(wrong_kind || object.error() == (Error{Code::not_found, 0, 0}));
      return;
    }
    EXPECT_EQ((*object)->name, name);
    const auto same = some_.catalog.find<T>((*object)->id);
    EXPECT_TRUE(same == nullptr ? (*object)->times_dropped == 1 : same == *object);
  }
  template <class T>
  void remove(const std::string& name) {
    const auto object = some_.catalog.drop<T>(name);
    if (!object) return;
    ++dropped;
    EXPECT_EQ((*object)->times_dropped, 1) << "one of the rivals drops it, once";
    EXPECT_EQ(some_.catalog.find<T>((*object)->id), nullptr);
  }
  void look_at_all() {
    std::string last;
    for (const EntryPointer& entry : some_.catalog.list()) {
      EXPECT_LT(last, entry->name);
      EXPECT_EQ(entry->object->numbers().entries, entry->id);
      last = entry->name;
    }
  }

  SomeCatalog& some_;
  base::Random random_;
};

TEST(CatalogConcurrency, OfThoseWhoMakeOpenOrDropANameEachSeesOneOrder) {
  constexpr std::size_t kThreads = 3;
  constexpr int kRounds = 40'000;
  const std::uint64_t seed = base::seed_from_environment(92);
  SomeCatalog some;
  std::vector<Rival> rivals;
  for (std::size_t i = 0; i < kThreads; ++i) rivals.emplace_back(some, seed + i);
  std::vector<std::thread> threads;
  for (Rival& rival : rivals) threads.emplace_back([&rival] { rival.run(kRounds); });
  for (std::thread& thread : threads) thread.join();
  std::set<std::uint32_t> ids;
  std::size_t made = 0;
  std::size_t dropped = 0;
  for (const Rival& rival : rivals) {
    for (const std::uint32_t id : rival.ids) EXPECT_TRUE(ids.insert(id).second) << id;
    made += static_cast<std::size_t>(rival.made);
    dropped += static_cast<std::size_t>(rival.dropped);
  }
  EXPECT_GT(dropped, 0u);
  EXPECT_EQ(made - dropped, some.catalog.list().size());
  EXPECT_EQ(static_cast<std::size_t>(some.living.load()), some.catalog.list().size())
      << "what is dropped and held by none is gone";
}

// Two names that threads exchange, and a third object, which replaces one of the two.
TEST(CatalogConcurrency, WhoLooksForANameThatIsExchangedFindsOneOfTheTwo) {
  constexpr int kRounds = 20'000;
  SomeCatalog some;
  ASSERT_TRUE(some.create<SomeMap>("a"));
  ASSERT_TRUE(some.create<SomeMap>("b"));
  std::atomic<bool> over{false};
  std::vector<std::thread> readers;
  std::array<std::uint64_t, 2> found{};
  for (std::size_t i = 0; i < found.size(); ++i) {
    readers.emplace_back([&, i] {
      const std::string name = i == 0 ? "a" : "b";
      do {
        const std::uint32_t before = some.catalog.renames();
        const EntryPointer entry = some.catalog.find_any(name);
        ASSERT_NE(entry, nullptr) << "a name is never gone";
        EXPECT_EQ(entry->name, name);
        const auto same = some.catalog.find<SomeMap>(entry->id);
        const auto& object = static_cast<const SomeMap&>(*entry->object);
        EXPECT_EQ(same == nullptr ? object.times_dropped.load() : 1, 1);
        // Without a later rename than counted before, the name is right.
        if (object.rename <= before) ++found[i];
      } while (!over);
    });
  }
  base::Random random(base::seed_from_environment(433));
  for (int round = 0; round < kRounds; ++round) {
    if (random.below(4) != 0) {
      EXPECT_TRUE(some.catalog.rename("a", "b", ObjectKind::map, Displaced::exchanged));
      continue;
    }
    EXPECT_TRUE(some.create<SomeMap>("c"));
    EXPECT_TRUE(some.catalog.rename("c", "a", ObjectKind::map, Displaced::dropped));
  }
  over = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(some.catalog.names(), (ObjectNames{"a", "b"}));
  EXPECT_EQ(some.living, 2);
  EXPECT_GT(found[0] + found[1], 0u);
}

}  // namespace
}  // namespace espalier::catalog
