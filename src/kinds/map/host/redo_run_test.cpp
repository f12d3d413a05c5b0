// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/host/redo_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "kinds/map/testing/redo_maps.hpp"
#include "kinds/map/write/audit.hpp"

namespace espalier::tree {
namespace {

class RecordRuns : public RedoMaps {
 protected:
  using RedoMaps::RedoMaps;

  /// Makes the map again, empty, in the other store; its records begin behind.
  MapCore& make_other(const MapCore& map) {
    EXPECT_TRUE(apply(sink_.records().front()));
    return *other(map);
  }
  /// Applies those from one on in runs of at most so many.
  void apply_runs(MapCore& map, std::span<const std::string_view> records, std::size_t most) {
    for (std::size_t at = 0; at < records.size();) {
      const std::size_t count = std::min(most, records.size() - at);
      std::size_t applied = 0;
      const auto done =
          apply_redo_run(other_context_, map, records.subspan(at, count), applied, state_);
      ASSERT_TRUE(done) << message(done.error()) << " of record " << at + applied;
      at += count;
    }
  }
  [[nodiscard]] std::vector<std::string_view> own_records() const {
    auto records = sink_.records();
    records.erase(records.begin());
    return records;
  }

  RedoRunState state_;
};

class RedoRuns : public RecordRuns {
 protected:
  MapUser user_{context_, create({.node_bytes = 1024})};
};

TEST_F(RedoRuns, MakeTheSameMapOfRandomWrites) {
  base::Random random(base::seed_from_environment(41));
  for (int i = 0; i < 6000; ++i) {
    const std::string key = random_key(random, 24);
    const std::uint64_t what = random.below(20);
    const std::size_t bytes = what == 19 ? random.below(3000) : random.below(24);
    if (what == 0) {
      ASSERT_TRUE(apply_batch(context_, user_.map(),
                              std::vector<BatchWrite>{{key, "1"}, {"batch", key}}, {}));
    } else if (what < 5) {
      user_.write(Op::erase, key);
    } else {
      user_.put(key, std::string(bytes, static_cast<char>('a' + what)));
    }
  }
  MapCore& made = make_other(user_.map());
  apply_runs(made, own_records(), 1 + random.below(2000));
  MapUser other(other_context_, this->other(user_.map()));
  EXPECT_EQ(other.items(), user_.items());
  EXPECT_EQ(audit(made), std::vector<std::string>{});
  // Versions are bounds: none is below that of the record that wrote it.
  EXPECT_GE(made.clock.taken(), user_.map().clock.taken());
  for (const auto& [key, value] : user_.items()) {
    ASSERT_GE(other.version(key), user_.version(key));
  }
}

// A long value goes another way than a short one, and takes longer.
TEST_F(RedoRuns, KeepTheOrderOfWritesOfOneKey) {
  const std::string value(100'000, 'v');
  for (const char* const key : {"a", "b", "c"}) {
    user_.put(key, value);
    user_.put(key, "short");
    user_.put(key, value);
    user_.write(Op::erase, key);
    user_.put(key, "last");
  }
  MapCore& made = make_other(user_.map());
  apply_runs(made, own_records(), 1000);
  MapUser other(other_context_, this->other(user_.map()));
  EXPECT_EQ(other.items(), user_.items());
}

TEST_F(RedoRuns, FillLeavesOfAscendingKeysAsSingleWritesDo) {
  for (int i = 0; i < 5000; ++i) user_.put(TreeFixture::numbered(i), "value");
  MapCore& made = make_other(user_.map());
  apply_runs(made, own_records(), 700);
  MapUser other(other_context_, this->other(user_.map()));
  EXPECT_EQ(other.items(), user_.items());
  EXPECT_EQ(audit(made), std::vector<std::string>{});
  EXPECT_EQ(made.log_merges.sum(), 0u);  // whole leaves were built
  EXPECT_LE(made.leaves.load(), user_.map().leaves.load() * 11 / 10);
}

// The next runs know that the store was full, and for how long that is believed.
TEST_F(RedoRuns, AreAppliedOneByOneWhereTheLastRunFoundNoMemory) {
  for (int i = 0; i < 300; ++i) user_.put(TreeFixture::numbered(i), "value");
  MapCore& made = make_other(user_.map());
  state_.one_by_one = 200;
  apply_runs(made, own_records(), 64);
  EXPECT_EQ(state_.one_by_one, 0u);
  EXPECT_GT(made.log_merges.sum(), 0u);  // of single writes; the others were built into leaves
  MapUser other(other_context_, this->other(user_.map()));
  EXPECT_EQ(other.items(), user_.items());
}

// Each append replaces a leaf, which waits for no reader.
TEST_F(RedoRuns, CollectTheLeavesThatAppendsReplace) {
  for (int i = 0; i < 40'000; ++i) user_.put(TreeFixture::numbered(i), std::string(64, 'v'));
  MapCore& made = make_other(user_.map());
  apply_runs(made, own_records(), 64);
  EXPECT_LT(made.store.reclaimer.waiting(made, false).bytes, 2 * memory::Reclaimer::kDueBytes);
}

TEST_F(RedoRuns, SayWhichRecordWasRefused) {
  for (int i = 0; i < 100; ++i) user_.put(TreeFixture::numbered(i * 37 % 100), "value");
  MapCore& made = make_other(user_.map());
  auto records = own_records();
  const std::string broken = std::string(records[60].substr(0, records[60].size() - 1));
  records[60] = broken;
  std::size_t applied = 0;
  const auto done = apply_redo_run(other_context_, made, records, applied, state_);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::corrupt);
  EXPECT_EQ(applied, 60u);
  EXPECT_EQ(made.items.sum(), 60);
}

/// The store that records are applied to is as small as the one that was filled.
class FullRedoRuns : public RecordRuns {
 protected:
  FullRedoRuns() : RecordRuns(std::uint64_t{8} << 20) {}
};

TEST_F(FullRedoRuns, ApplyWhatFilledAStore) {
  MapUser user(context_, create({.node_bytes = 8192}));
  for (std::uint64_t i = 0;; ++i) {
    if (!user.put("key" + std::to_string(10'000'000 + i), std::string(100, 'v')).ok) break;
  }
  auto records = sink_.records();
  ASSERT_TRUE(apply(records.front()));
  apply_runs(*other(user.map()), std::span(records).subspan(1), 500);
  MapUser again(other_context_, other(user.map()));
  EXPECT_EQ(again.items(), user.items());
}

// In one window puts may come before the erases that made room for them.
TEST_F(FullRedoRuns, ApplyWhatErasesMadeRoomFor) {
  base::Random random(base::seed_from_environment(43));
  MapUser user(context_, create({.node_bytes = 8192}));
  const auto key = [](std::uint64_t i) { return "key" + std::to_string(10'000'000 + i); };
  std::uint64_t next = 0;
  while (user.put(key(next * 7919 % 1'000'000), std::string(100, 'v')).ok) ++next;
  std::uint64_t erased = 0;
  std::uint64_t written = 0;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 100; ++i) user.write(Op::erase, key(erased++ * 7919 % 1'000'000));
    for (int i = 0; i < 100; ++i) {
      written += user.put(key(next++ * 7919 % 1'000'000), std::string(100, 'w')).ok ? 1 : 0;
    }
  }
  ASSERT_GT(written, 2000u);
  auto records = sink_.records();
  ASSERT_TRUE(apply(records.front()));
  apply_runs(*other(user.map()), std::span(records).subspan(1), 200 + random.below(1000));
  MapUser again(other_context_, other(user.map()));
  EXPECT_EQ(again.items(), user.items());
  EXPECT_EQ(audit(*other(user.map())), std::vector<std::string>{});
}

/// The store that records are applied to is smaller than the one that was filled.
class TooFullRedoRuns : public RecordRuns {
 protected:
  TooFullRedoRuns() : RecordRuns(std::uint64_t{16} << 20, std::uint64_t{8} << 20) {}
};

// Records take the reserves of erases, and keep them.
TEST_F(TooFullRedoRuns, LeaveAStoreThatTakesErases) {
  MapUser user(context_, create({.node_bytes = 8192}));
  const auto key_of = [](std::uint64_t i) {
    return "key" + std::to_string(10'000'000 + i * 7919 % 1'000'000);
  };
  std::uint64_t next = 0;
  while (user.put(key_of(next), std::string(100, 'v')).ok) ++next;
  const auto records = sink_.records();
  std::size_t applied = 0;
  while (applied < records.size() && apply(records[applied])) ++applied;
  ASSERT_LT(applied, records.size());
  MapCore& made = *other(user.map());
  EXPECT_LT(made.spare_nodes.size(), made.spares_wanted());
  ASSERT_TRUE(other_.refill_reserves());
  EXPECT_EQ(made.spare_nodes.size(), made.spares_wanted());
  EXPECT_LE(other_.region.taken_bytes(), other_.region.limit_bytes() + 2 * memory::kExtentBytes);
  MapUser again(other_context_, other(user.map()));
  for (const auto& [key, value] : again.items()) ASSERT_TRUE(again.write(Op::erase, key).ok) << key;
  EXPECT_TRUE(again.put("key", std::string(100, 'v')).ok);
  EXPECT_EQ(again.items().size(), 1u);
  EXPECT_EQ(audit(made), std::vector<std::string>{});
}

}  // namespace
}  // namespace espalier::tree
