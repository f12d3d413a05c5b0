// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/apply_redo.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "kinds/map/testing/redo_maps.hpp"
#include "kinds/map/write/batch.hpp"

namespace espalier::tree {
namespace {

using catalog::RedoFault;

// --- random writes of every kind, applied to another map -----------------------------------------

struct Shape {
  std::uint32_t node_bytes;
  std::uint32_t log_bytes;
  bool versions;
};

class ApplyRedoModel : public RedoMaps, public ::testing::WithParamInterface<Shape> {
 protected:
  std::string random_value() {
    const std::uint64_t bytes = random_.below(20) == 0 ? random_.below(3000) : random_.below(24);
    std::string value(bytes, 0);
    for (char& letter : value) letter = static_cast<char>('a' + random_.below(26));
    return value;
  }
  std::string some_key() { return random_key(random_, 24); }

  void write_batch(MapUser& user, bool shrinking) {
    std::vector<std::pair<std::string, std::string>> texts(1 + random_.below(20));
    std::vector<BatchWrite> writes;
    std::vector<BatchCheck> checks;
    for (auto& [key, value] : texts) {
      key = some_key();
      value = random_value();
      writes.push_back({key, value, random_.below(10) < (shrinking ? 8u : 2u)});
    }
    if (random_.below(4) == 0) {
      checks.push_back({texts.front().first, {ConditionKind::present, 0, {}}});
    }
    ASSERT_TRUE(apply_batch(context_, user.map(), writes, checks));
  }
  void step(MapUser& user, bool shrinking) {
    const std::uint64_t what = random_.below(12);
    if (what == 0) return write_batch(user, shrinking);
    if (what == 5) {
      Addition addition{.amount = random_()};
      ASSERT_TRUE(user.add("number" + std::to_string(random_.below(20)), addition).ok);
      return;
    }
    const Op rest = shrinking ? Op::erase : Op::put;
    const Op op = what == 1   ? Op::insert
                  : what == 2 ? Op::update
                  : what == 3 ? Op::erase
                  : what == 4 ? Op::put
                              : rest;
    ASSERT_TRUE(user.write(op, some_key(), random_value()).ok);
  }

  // No item is older there than its last record says, and no version comes again.
  void expect_versions(MapUser& from, MapUser& to) {
    for (const auto& [key, versions] : versions_by_key(sink_)) {
      const std::uint64_t there = to.version(key);
      EXPECT_EQ(there == 0, from.version(key) == 0);
      if (there != 0) {
        EXPECT_GE(there, versions.back());
      }
    }
    std::uint64_t version = 0;
    for (const MapRedo& record : map_records(sink_)) ASSERT_EQ(record.version, ++version);
    EXPECT_EQ(version, from.map().clock.taken());
    EXPECT_GE(to.map().clock.released(), version);
  }

  base::Random random_{base::seed_from_environment(71)};
};

TEST_P(ApplyRedoModel, MakesTheSameMap) {
  const Shape shape = GetParam();
  MapUser from(context_, create({.node_bytes = shape.node_bytes,
                                 .log_bytes = shape.log_bytes,
                                 .versions = shape.versions}));
  for (int i = 0; i < 1600; ++i) step(from, i / 400 % 2 != 0);
  for (int i = 0; i < 200; ++i) step(from, false);
  const std::size_t count = sink_.count();
  apply_some(0, count);
  MapUser to(other_context_, other(from.map()));
  EXPECT_EQ(to.items(), from.items());
  EXPECT_EQ(to.map().items.sum(), from.map().items.sum());
  EXPECT_EQ(to.map().description(), from.map().description());
  if (shape.versions) expect_versions(from, to);
  // As recovery does that begins with a state in which some of them are.
  apply_some(random_.below(count), count);
  EXPECT_EQ(to.items(), from.items());
  apply_some(0, count);
  EXPECT_EQ(to.items(), from.items());
  EXPECT_EQ(to.map().items.sum(), from.map().items.sum());
  EXPECT_EQ(audit_store(other_), std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(Shapes, ApplyRedoModel,
                         ::testing::Values(Shape{512, 64, true}, Shape{512, 0, false},
                                           Shape{1024, 512, true}, Shape{8192, 512, true},
                                           Shape{8192, 512, false}));

// --- one record ----------------------------------------------------------------------------------

class ApplyRedo : public RedoMaps {
 protected:
  ApplyRedo() {
    user_.put("key", "value");
    EXPECT_TRUE(RedoMaps::apply(sink_.records().front()));
    written_ = sink_.records().back();
  }
  RedoFault fault(const std::string& record) {
    const auto applied = apply_redo(other_context_, *other(user_.map()), record);
    if (applied) return RedoFault::invalid;
    EXPECT_EQ(applied.error().code, Code::corrupt);
    return static_cast<RedoFault>(applied.error().detail);
  }
  template <class T>
  std::string with(std::size_t at, T value) {
    std::string changed = written_;
    std::memcpy(changed.data() + at, &value, sizeof value);
    return changed;
  }

  MapUser user_{context_, create({.node_bytes = 512})};
  std::string written_;
};

TEST_F(ApplyRedo, ASecondTimeItChangesNothing) {
  EXPECT_EQ(fault(written_), RedoFault::invalid);
  MapUser to(other_context_, other(user_.map()));
  EXPECT_EQ(to.get("key"), "value");
  EXPECT_EQ(to.version("key"), 1u);
  EXPECT_EQ(fault(written_), RedoFault::invalid);
  EXPECT_EQ(to.items(), user_.items());
}

TEST_F(ApplyRedo, VersionsGoOnAboveThoseOfRecords) {
  EXPECT_EQ(fault(with<std::uint64_t>(16, 1000)), RedoFault::invalid);
  MapUser to(other_context_, other(user_.map()));
  EXPECT_EQ(to.version("key"), 1000u);
  EXPECT_EQ(to.put("other", "1").version, 1001u);
  // One that is older than others of other keys: it was taken earlier, and handed over later.
  EXPECT_EQ(fault(written_), RedoFault::invalid);
  EXPECT_EQ(to.version("key"), 1002u);
  EXPECT_EQ(audit_store(other_), std::vector<std::string>{});
}

// What it erased may be gone already.
TEST_F(ApplyRedo, AnEraseOfNothingHasItsVersion) {
  user_.write(Op::erase, "key");
  EXPECT_EQ(fault(std::string(sink_.records().back())), RedoFault::invalid);
  EXPECT_EQ(other(user_.map())->clock.taken(), 2u);
  EXPECT_EQ(other(user_.map())->clock.released(), 2u);
}

// A client's hold of releases stops no replay, wherever versions are missing.
TEST_F(ApplyRedo, VersionsGoOnWhileAHoldStands) {
  const Core map = other(user_.map());
  ASSERT_NE(map->clock.hold(), 0u);
  EXPECT_EQ(fault(written_), RedoFault::invalid);
  EXPECT_EQ(fault(with<std::uint64_t>(16, 1000)), RedoFault::invalid);
  EXPECT_EQ(map->clock.taken(), 1000u);
  while (map->clock.released_now() < 1000) std::this_thread::yield();
  EXPECT_EQ(MapUser(other_context_, map).version("key"), 1000u);
}

TEST_F(ApplyRedo, SaysWhatIsWrongAndChangesNothing) {
  EXPECT_EQ(fault({}), RedoFault::too_short);
  EXPECT_EQ(fault(written_ + 'x'), RedoFault::bytes);
  EXPECT_EQ(fault(with<std::uint32_t>(8, 2)), RedoFault::object);
  EXPECT_EQ(fault(with<std::uint8_t>(12, 2)), RedoFault::kind);
  EXPECT_EQ(fault(with<std::uint8_t>(13, 19)), RedoFault::type);
  EXPECT_EQ(fault(with<std::uint64_t>(16, 0)), RedoFault::version);
  EXPECT_EQ(fault(with<std::uint64_t>(16, ~std::uint64_t{0})), RedoFault::version);
  EXPECT_EQ(fault(with<std::uint32_t>(24, 0)), RedoFault::count);
  EXPECT_EQ(fault(with<std::uint32_t>(24, 2)), RedoFault::too_short);
  EXPECT_EQ(fault(with<std::uint32_t>(24, 100)), RedoFault::count);
  EXPECT_EQ(fault(with<std::uint32_t>(28, 1)), RedoFault::reserved);
  EXPECT_EQ(fault(with<std::uint32_t>(32, 4)), RedoFault::count);
  EXPECT_EQ(fault(with<std::uint32_t>(32, 6)), RedoFault::too_short);
  EXPECT_EQ(fault(with<std::uint16_t>(36, 0)), RedoFault::key_bytes);
  EXPECT_EQ(fault(with<std::uint8_t>(38, 0)), RedoFault::type);
  EXPECT_EQ(fault(with<std::uint8_t>(38, 2)), RedoFault::value);  // an erase with a value
  EXPECT_EQ(fault(with<std::uint8_t>(39, 1)), RedoFault::reserved);
  EXPECT_EQ(other(user_.map())->clock.taken(), 0u);
  EXPECT_EQ(other(user_.map())->items.sum(), 0u);
  const std::string key(user_.map().geometry.key_bytes_max + 1, 'k');
  std::string longer = written_.substr(0, 40) + key + "value";
  const std::uint64_t bytes = longer.size();
  const auto key_bytes = static_cast<std::uint16_t>(key.size());
  std::memcpy(longer.data(), &bytes, sizeof bytes);
  std::memcpy(longer.data() + 36, &key_bytes, sizeof key_bytes);
  EXPECT_EQ(fault(longer), RedoFault::key_bytes);
}

// --- stores that are full ------------------------------------------------------------------------

class FullRedoMaps : public RedoMaps {
 protected:
  FullRedoMaps() : RedoMaps(std::uint64_t{8} << 20) {}

  // Until there is no memory for more.
  void fill(MapUser& user) {
    for (;;) {
      std::string key(16, 0);
      for (char& letter : key) letter = static_cast<char>(random_.below(256));
      const std::string value(300 + random_.below(200), 'v');
      const Completion done = user.put(key, value);
      if (!done.ok) {
        EXPECT_EQ(done.error.code, Code::out_of_memory);
        return;
      }
      keys_.push_back(key);
    }
  }
  void erase_some(MapUser& user) {
    for (std::size_t i = keys_.size() / 3; i != 0; --i) {
      std::swap(keys_[random_.below(keys_.size())], keys_.back());
      ASSERT_TRUE(user.write(Op::erase, keys_.back()).applied);
      keys_.pop_back();
    }
  }

  base::Random random_{base::seed_from_environment(72)};
  std::vector<std::string> keys_;
};

// What is applied takes no more memory than what was written.
TEST_F(FullRedoMaps, TheRecordsOfAFullStoreFitOneOfItsSize) {
  MapUser from(context_, create({.node_bytes = 8192}));
  fill(from);
  erase_some(from);
  fill(from);
  apply_some(0, sink_.count());
  MapUser to(other_context_, other(from.map()));
  EXPECT_TRUE(to.items() == from.items());
  EXPECT_EQ(to.map().items.sum(), keys_.size());
  EXPECT_EQ(audit_store(other_), std::vector<std::string>{});
}

// --- maps as they are made, and dropped ----------------------------------------------------------

TEST_F(RedoMaps, MapsAndShardsComeBackAsTheyWere) {
  wire::ShardMap shard;
  shard.uid = 7;
  shard.own = 1;
  shard.shards = {{"", "node1:1"}, {"m", "node2:1"}};
  const Core plain = create({.node_bytes = 4096, .log_bytes = 128, .versions = false});
  const auto own = create_shard(store_, "shard", {}, shard);
  ASSERT_TRUE(own);
  EXPECT_EQ(catalog::hex_of(sink_.records().back()),
            "5c00000000000000 0200000001010000 3f00000005000000 7368617264000000 "
            "1000000000002000 0000020000010000 0000000000070000 0000000000010000 "
            "0001000200000007 006e6f6465313a31 010007006d6e6f64 65323a31");
  apply_some(0, 2);
  EXPECT_EQ(other(*plain)->name, "map");
  EXPECT_EQ(other(*plain)->description(), plain->description());
  EXPECT_EQ(other(*plain)->shard, nullptr);
  ASSERT_NE(other(**own)->shard, nullptr);
  EXPECT_TRUE(other(**own)->shard->same(shard));
  EXPECT_EQ(other(**own)->shard->own, 1u);
}

// Of a request that has it still, and an application that does.
TEST_F(ApplyRedo, ADroppedMapTakesNoRecord) {
  MapUser to(other_context_, other(user_.map()));
  ASSERT_TRUE(*other_.catalog.drop_again({ObjectKind::map, user_.map().id}));
  EXPECT_TRUE(apply_redo(other_context_, to.map(), written_));
  EXPECT_EQ(to.map().items.sum(), 0u);
}

TEST_F(RedoMaps, WhatIsWrittenToADroppedMapIsLeftOut) {
  MapUser user(context_, create({}));
  user.put("key", "1");
  ASSERT_TRUE(store_.catalog.drop("map"));
  user.put("key", "2");  // by a request that had it already
  const Core next = create({});
  const std::size_t count = sink_.count();
  for (int times = 0; times < 2; ++times) {
    apply_some(0, count);
    EXPECT_EQ(other_.catalog.names(), std::vector<std::string>{"map"});
    EXPECT_EQ(other(*next)->items.sum(), 0u);
  }
}

TEST_F(RedoMaps, WithoutRoomThereIsNoMap) {
  sink_.refuse(true);
  EXPECT_EQ(create_map(store_, "map", {}).error().code, Code::busy);
  EXPECT_EQ(buffers_in_use(store_), 0u);
  EXPECT_EQ(store_.catalog.names(), std::vector<std::string>{});
}

TEST_F(RedoMaps, NoMapIsMadeOfAFormThatIsNone) {
  const auto fault = [this](std::string_view form) {
    const auto made = restore_map(other_, {ObjectKind::map, 1, "map", form});
    return made ? RedoFault::invalid : static_cast<RedoFault>(made.error().detail);
  };
  static_cast<void>(create({}));
  std::string form(catalog::read_created(sink_.records().front())->form);
  EXPECT_EQ(fault({}), RedoFault::form);
  EXPECT_EQ(fault(form.substr(0, 23)), RedoFault::form);
  EXPECT_EQ(fault(form + "x"), RedoFault::form);
  form[8] = 1;  // of the bytes of a node
  EXPECT_EQ(fault(form), RedoFault::form);
  EXPECT_EQ(other_.catalog.names(), std::vector<std::string>{});
}

}  // namespace
}  // namespace espalier::tree
