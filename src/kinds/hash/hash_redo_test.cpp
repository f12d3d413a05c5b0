// SPDX-License-Identifier: Apache-2.0
// Records of hash maps: their bytes, what they make of another map, and what is refused.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "catalog/testing/recording_sink.hpp"
#include "kinds/hash/apply_redo.hpp"
#include "kinds/hash/redo_record.hpp"
#include "kinds/hash/testing/hash_fixture.hpp"

namespace espalier::hash {
namespace {

using catalog::RecordingSink;
using catalog::RedoFault;

std::uint32_t fault_of(const Result<void>& applied) {
  EXPECT_FALSE(applied);
  if (applied) return 0;
  EXPECT_EQ(applied.error().code, Code::corrupt);
  return applied.error().detail;
}

constexpr std::uint32_t number(RedoFault fault) { return static_cast<std::uint32_t>(fault); }

TEST(HashRedo, RecordsHaveTheseBytes) {
  RecordingSink sink;
  HashFixture f;
  f.map->record_to(&sink);
  f.put("key", "value");
  ASSERT_TRUE(f.map->erase(f.thread, "key")->applied);
  EXPECT_FALSE(f.map->erase(f.thread, "key")->applied);  // nothing happened
  EXPECT_FALSE(f.map->update(f.thread, "key", "x")->applied);
  EXPECT_EQ(f.map->compare_and_set(f.thread, "key", "x", "y").error().code, Code::condition_failed);
  const auto records = sink.records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(catalog::hex_of(records[0]),
            "2800000000000000 0100000004100000 0100000000000000 0500000003000100 "
            "6b657976616c7565");
  EXPECT_EQ(catalog::hex_of(records[1]),
            "2300000000000000 0100000004100000 0200000000000000 0000000003000200 6b6579");
  EXPECT_EQ(sink.rooms(), 0u);
}

TEST(HashRedo, WithoutRoomNothingIsChanged) {
  RecordingSink sink;
  HashFixture f;
  f.put("k", "v");
  f.map->record_to(&sink);
  sink.refuse(true);
  EXPECT_EQ(f.map->put(f.thread, "k", "w").error().code, Code::busy);
  EXPECT_EQ(f.map->put(f.thread, "k", std::string(5000, 'w')).error().code, Code::busy);
  EXPECT_EQ(f.map->erase(f.thread, "k").error().code, Code::busy);
  EXPECT_EQ(f.map->add(f.thread, "n", 1).error().code, Code::busy);
  EXPECT_EQ(f.get("k"), "v");
  EXPECT_EQ(f.map->clock().taken(), 1u);
  EXPECT_EQ(f.faults(), "");
}

/// A map of the same id, in a store of its own.
struct OtherMap {
  explicit OtherMap(const HashMap& like, std::uint64_t bytes_max = std::uint64_t{128} << 20)
      : parts(bytes_max), thread(HashThread::join(parts.store).value()) {
    const HashShape shape = like.shape();
    map = restore_hash_map(parts.store,
                           {ObjectKind::hash, like.id(), like.name(), base::bytes_of(shape)})
              .value();
  }

  StoreParts parts;
  HashThread thread;
  std::shared_ptr<HashMap> map;
};

class HashRedoModel : public ::testing::TestWithParam<bool> {};

TEST_P(HashRedoModel, RecordsMakeTheSameMap) {
  base::Random random(base::seed_from_environment(20261129));
  const bool versions = GetParam();
  RecordingSink sink;
  HashFixture f({.partitions = 2, .versions = versions});
  f.map->record_to(&sink);
  const auto key_of = [](std::uint64_t i) { return "key" + std::to_string(i); };
  for (int i = 0; i < 6000; ++i) {
    const std::string key = key_of(random.below(300));
    const std::size_t bytes = random.below(30) == 0 ? random.below(9000) : random.below(80);
    const std::string value(bytes, static_cast<char>('a' + random.below(26)));
    switch (random.below(6)) {
      case 0: ASSERT_TRUE(f.map->insert(f.thread, key, value)); break;
      case 1: ASSERT_TRUE(f.map->update(f.thread, key, value)); break;
      case 2: ASSERT_TRUE(f.map->erase(f.thread, key)); break;
      case 3: ASSERT_TRUE(f.map->add(f.thread, "counter", random.below(9))); break;
      default: ASSERT_TRUE(f.map->put(f.thread, key, value)); break;
    }
  }
  ASSERT_EQ(sink.rooms(), 0u);
  const auto records = sink.records();
  OtherMap other(*f.map);
  // Twice all of them, and once from one on that was applied before.
  for (const std::size_t from : {std::size_t{0}, std::size_t{0}, random.below(records.size())}) {
    for (std::size_t i = from; i < records.size(); ++i) {
      ASSERT_TRUE(apply_redo(other.thread, *other.map, records[i])) << i;
    }
    ASSERT_EQ(other.map->numbers().entries, f.map->numbers().entries);
    for (std::uint64_t i = 0; i < 300; ++i) {
      ASSERT_EQ(other.map->get(other.thread, key_of(i)).value(), f.get(key_of(i))) << key_of(i);
    }
    ASSERT_EQ(other.map->get(other.thread, "counter").value(), f.get("counter"));
    ASSERT_GE(other.map->clock().released(), f.map->clock().released());
    other.thread.cache->flush();
    other.map->records().trim();
    ASSERT_EQ(audit(*other.map).wrong, std::vector<std::string>{});
  }
}
INSTANTIATE_TEST_SUITE_P(Versions, HashRedoModel, ::testing::Bool());

// One thread's versions come again as they were.
TEST(HashRedo, VersionsOfOneWriterAreKept) {
  RecordingSink sink;
  HashFixture f;
  f.map->record_to(&sink);
  for (int i = 0; i < 50; ++i) f.put("key" + std::to_string(i % 20), std::to_string(i));
  OtherMap other(*f.map);
  for (const std::string_view record : sink.records()) {
    ASSERT_TRUE(apply_redo(other.thread, *other.map, record));
  }
  for (int i = 0; i < 20; ++i) {
    const std::string key = "key" + std::to_string(i);
    const std::uint64_t version = HashReader(*f.map, f.thread).get(key).version;
    EXPECT_EQ(HashReader(*other.map, other.thread).get(key).version, version) << key;
  }
}

// What the copy of a map ends with.
TEST(HashRedo, AVersionAloneMovesTheClock) {
  HashFixture f;
  OtherMap other(*f.map);
  HashCountedRecord record{};
  record.head = catalog::redo_head(ObjectKind::hash, f.map->id(),
                                   static_cast<std::uint8_t>(RedoType::counted), sizeof record);
  record.version = 77;
  EXPECT_EQ(catalog::hex_of(base::bytes_of(record)),
            "1800000000000000 0100000004110000 4d00000000000000");
  for (int again = 0; again < 2; ++again) {
    ASSERT_TRUE(apply_redo(other.thread, *other.map, base::bytes_of(record)));
    EXPECT_EQ(other.map->clock().taken(), 77u);
    EXPECT_EQ(other.map->clock().released(), 77u);
  }
  record.version = 0;
  EXPECT_EQ(fault_of(apply_redo(other.thread, *other.map, base::bytes_of(record))),
            number(RedoFault::version));
  EXPECT_EQ(fault_of(apply_redo(other.thread, *other.map, base::bytes_of(record).substr(0, 16))),
            number(RedoFault::bytes));
}

TEST(HashRedo, WhatIsNoRecordIsRefused) {
  RecordingSink sink;
  HashFixture f;
  f.map->record_to(&sink);
  f.put("key", "value");
  const std::string good(sink.records().front());
  OtherMap other(*f.map);
  const auto apply = [&](std::size_t at, char byte, std::size_t cut = 0) {
    std::string bytes = good.substr(0, good.size() - cut);
    bytes[at] = byte;
    bytes[0] = static_cast<char>(at == 0 ? byte : static_cast<char>(bytes.size()));
    return fault_of(apply_redo(other.thread, *other.map, bytes));
  };
  EXPECT_EQ(apply(0, 41), number(RedoFault::bytes));
  EXPECT_EQ(apply(8, 2), number(RedoFault::object));
  EXPECT_EQ(apply(8, 0), number(RedoFault::object));
  EXPECT_EQ(apply(12, 1), number(RedoFault::kind));
  EXPECT_EQ(apply(13, 17), number(RedoFault::bytes));  // as a version alone it is too long
  EXPECT_EQ(apply(13, 18), number(RedoFault::type));
  EXPECT_EQ(apply(14, 1), number(RedoFault::reserved));
  EXPECT_EQ(apply(16, 0), number(RedoFault::version));
  EXPECT_EQ(apply(23, '\x80'), number(RedoFault::version));
  EXPECT_EQ(apply(24, 6), number(RedoFault::too_short));
  EXPECT_EQ(apply(24, 4), number(RedoFault::bytes));
  EXPECT_EQ(apply(28, 0), number(RedoFault::bytes));
  EXPECT_EQ(apply(30, 3), number(RedoFault::type));
  EXPECT_EQ(apply(30, 2), number(RedoFault::value));
  EXPECT_EQ(apply(31, 1), number(RedoFault::reserved));
  EXPECT_EQ(apply(28, 3, 8), number(RedoFault::too_short));
  EXPECT_EQ(other.map->numbers().entries, 0u);
  EXPECT_EQ(other.map->clock().taken(), 0u);
  const HashShape shape{3, 1, 0, 0, 0};
  const auto made =
      restore_hash_map(other.parts.store, {ObjectKind::hash, 9, "other", base::bytes_of(shape)});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().detail, number(RedoFault::form));
}

// Of a full store a store of the same size is made.
TEST(HashRedo, AFullStoreIsMadeAgain) {
  RecordingSink sink;
  constexpr std::uint64_t kBytes = std::uint64_t{24} << 20;
  HashFixture f({.partitions = 2}, kBytes);
  f.map->record_to(&sink);
  const std::string value(3000, 'v');
  int stored = 0;
  while (f.map->put(f.thread, "key" + std::to_string(stored), value)) ++stored;
  ASSERT_GT(stored, 100);
  OtherMap other(*f.map, kBytes);
  for (const std::string_view record : sink.records()) {
    ASSERT_TRUE(apply_redo(other.thread, *other.map, record));
  }
  EXPECT_EQ(other.map->numbers().entries, static_cast<std::uint64_t>(stored));
}

TEST(HashRedoConcurrency, RecordsOfAKeyComeInTheOrderOfVersions) {
  RecordingSink sink;
  HashFixture f({.partitions = 2});
  f.map->record_to(&sink);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        HashThread own = f.another_thread();
        for (int i = 0; i < 2000; ++i) {
          const std::string key = "key" + std::to_string((i * 7 + t) % 10);
          if (i % 5 == 0) {
            ASSERT_TRUE(f.map->erase(own, key));
          } else {
            ASSERT_TRUE(f.map->put(own, key, std::to_string(t) + "." + std::to_string(i)));
          }
        }
      });
    }
  }
  std::map<std::string, std::uint64_t> last;
  OtherMap other(*f.map);
  for (const std::string_view record : sink.records()) {
    const auto redo = read_hash_redo(record, kValueBytesMax);
    ASSERT_TRUE(redo);
    std::uint64_t& before = last[std::string(redo->key)];
    ASSERT_LT(before, redo->version);
    before = redo->version;
    ASSERT_TRUE(apply_redo(other.thread, *other.map, record));
  }
  for (int i = 0; i < 10; ++i) {
    const std::string key = "key" + std::to_string(i);
    EXPECT_EQ(other.map->get(other.thread, key).value(), f.get(key));
  }
}

}  // namespace
}  // namespace espalier::hash
