// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/record_store.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/random.hpp"
#include "kinds/hash/testing/hash_fixture.hpp"

namespace espalier::hash {
namespace {

TEST(RecordStore, ClassesHoldWhatTheyAreFor) {
  for (std::uint32_t bytes = 1; bytes <= kRecordBytesMax; ++bytes) {
    const RecordClass cls = record_class_of(bytes);
    ASSERT_LT(cls, kRecordClasses);
    EXPECT_GE(kRecordBytes[cls], bytes);
    if (cls != 0) {
      EXPECT_LT(kRecordBytes[cls - 1], bytes);
    }
  }
  EXPECT_EQ(record_class_of(kRecordBytesMax + 1), kRecordClasses);
  for (const std::uint32_t bytes : kRecordBytes) EXPECT_EQ(bytes % kRecordAlignment, 0u);
}

class RecordStoreTest : public testing::Test {
 protected:
  std::uint32_t generation(std::uint64_t offset) {
    return base::load_shared<std::uint32_t>(parts_.pool.at(offset) +
                                            offsetof(RecordHeader, generation));
  }
  void give(const std::vector<std::pair<std::uint64_t, RecordClass>>& back) {
    for (const auto& [offset, cls] : back) records_.give(cls, {&offset, 1});
  }
  StoreParts parts_{std::uint64_t{64} << 20};
  RecordStore records_{parts_.pool, 1};
};

// A model knows what is taken, and which generation each place had last.
TEST_F(RecordStoreTest, HandsOutEachPlaceOnceAndUnderANewGeneration) {
  base::Random random(base::seed_from_environment(1));
  std::map<std::uint64_t, RecordClass> taken;
  std::map<std::uint64_t, std::uint32_t> last;
  for (int step = 0; step < 2000; ++step) {
    if (random.below(2) == 0 || taken.empty()) {
      const auto cls = static_cast<RecordClass>(random.below(kRecordClasses));
      std::uint64_t offsets[64];
      const std::size_t want = random.between(1, 64);
      const std::uint32_t got = records_.take(cls, std::span(offsets).first(want));
      ASSERT_NE(got, 0u);
      for (std::uint32_t i = 0; i < got; ++i) {
        ASSERT_TRUE(taken.emplace(offsets[i], cls).second);
        ASSERT_EQ(records_.class_at(offsets[i]), cls);
        const std::uint32_t now = generation(offsets[i]);
        ASSERT_NE(now & Slot::kGenerationMask, 0u);
        if (last.contains(offsets[i])) {
          ASSERT_GT(now, last[offsets[i]]);
        }
        last[offsets[i]] = now;
      }
    } else {
      std::vector<std::pair<std::uint64_t, RecordClass>> back;
      const bool all = random.below(50) == 0;
      for (auto at = taken.begin(); at != taken.end();) {
        if (all || random.below(4) == 0) {
          back.push_back(*at);
          at = taken.erase(at);
        } else {
          ++at;
        }
      }
      give(back);
      if (random.below(3) != 0) continue;
      records_.trim();
      for (const auto& [offset, cls] : back) ASSERT_EQ(records_.class_at(offset), kRecordClasses);
    }
    ASSERT_EQ(records_.numbers().records, taken.size());
  }
  give({taken.begin(), taken.end()});
  records_.trim();
  EXPECT_EQ(records_.numbers().records, 0u);
  EXPECT_LE(records_.numbers().pages, kRecordClasses);  // one of each class stays
  EXPECT_EQ(parts_.pool.stats(memory::kRecordsClass).in_use, records_.numbers().pages);
}

TEST_F(RecordStoreTest, GenerationsGoOnAboveThoseOfAMapThatIsGone) {
  constexpr RecordClass kClass = 3;
  std::map<std::uint64_t, std::uint32_t> last;
  {
    RecordStore gone(parts_.pool, 2);
    std::uint64_t offsets[64];
    for (int round = 0; round < 20; ++round) {
      ASSERT_EQ(gone.take(kClass, offsets), 64u);
      if (round != 19) gone.give(kClass, offsets);
    }
    for (const std::uint64_t offset : offsets) last[offset] = generation(offset);
  }
  std::uint64_t offsets[400];
  const std::uint32_t got = records_.take(kClass, offsets);
  std::uint32_t again = 0;
  for (std::uint32_t i = 0; i < got; ++i) {
    const auto before = last.find(offsets[i]);
    if (before == last.end()) continue;
    ++again;
    EXPECT_GT(generation(offsets[i]), before->second);
  }
  EXPECT_GT(again, 0u);
}

TEST_F(RecordStoreTest, WithoutMemoryNothingIsTaken) {
  std::uint64_t offset = 0;
  parts_.pool.fail_from(0);
  EXPECT_EQ(records_.take(3, {&offset, 1}), 0u);
  parts_.pool.fail_after(-1);
  EXPECT_EQ(records_.take(3, {&offset, 1}), 1u);
}

}  // namespace
}  // namespace espalier::hash
