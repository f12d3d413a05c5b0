// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/remote/feed_cursor.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "base/atomic_bytes.hpp"
#include "base/random.hpp"
#include "kinds/map/remote/testing/feed_checks.hpp"

namespace espalier::place {
namespace {

using Came = FeedCursor::Came;

class FeedCursorTest : public ::testing::Test {
 protected:
  FeedTable table_{8};
};

TEST_F(FeedCursorTest, WhoBeginsReadsTheTableAndThenEntries) {
  table_.move(0, 1);
  FeedReader reader = table_.follow();
  EXPECT_EQ(reader.poll(), Came::behind);
  EXPECT_TRUE(table_.knows_all(reader));
  EXPECT_EQ(reader.poll(), Came::entries);
  EXPECT_EQ(reader.taken(), 0u);
  table_.move(0, 2);
  table_.move(3, 3);
  table_.move(0, 4);
  EXPECT_FALSE(table_.knows_all(reader));
  reader.catch_up();
  EXPECT_EQ(reader.taken(), 3u);
  EXPECT_EQ(reader.behind(), 1u);
  EXPECT_TRUE(table_.knows_all(reader));
}

TEST_F(FeedCursorTest, ALidThatIsGivenUpIsTold) {
  table_.move(1, 1);
  FeedReader reader = table_.follow();
  reader.catch_up();
  const wire::Lid lid = table_.lid(1);
  ASSERT_TRUE(reader.place(lid));
  table_.table().release(lid);
  reader.catch_up();
  EXPECT_FALSE(reader.place(lid));
}

TEST_F(FeedCursorTest, NothingIsToldWhileNobodyFollows) {
  EXPECT_EQ(table_.table().buffers().size(), 2u);
  FeedReader reader = table_.follow();
  EXPECT_EQ(table_.table().buffers().size(), 3u);
  reader.catch_up();
  table_.table().feed().remove_follower();
  EXPECT_EQ(table_.table().feed().followers(), 0u);
  for (std::uint64_t version = 1; version < 10; ++version) table_.move(2, version);
  EXPECT_EQ(reader.poll(), Came::entries);
  EXPECT_EQ(reader.taken(), 0u);
  EXPECT_FALSE(table_.knows_all(reader));
  // After it is on again, a reader that missed this learns that it was off.
  FeedReader other = table_.follow();
  EXPECT_EQ(reader.poll(), Came::behind);
  EXPECT_TRUE(table_.knows_all(reader));
  EXPECT_EQ(table_.table().buffers().size(), 3u);
}

TEST_F(FeedCursorTest, OneRingServesAllFollowersUpToABound) {
  for (std::uint32_t i = 0; i < tree::MappingFeed::kFollowersMax; ++i) {
    ASSERT_TRUE(table_.table().feed().add_follower());
  }
  const auto refused = table_.table().feed().add_follower();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::too_many_participants);
  EXPECT_EQ(table_.table().buffers().size(), 3u);
}

TEST_F(FeedCursorTest, WhoIsAWholeRingBehindReadsTheTable) {
  FeedReader reader = table_.follow();
  reader.catch_up();
  std::uint64_t version = 0;
  for (std::uint32_t i = 0; i < wire::kFeedEntries; ++i) table_.move(i % 8, ++version);
  EXPECT_EQ(reader.poll(), Came::entries);  // just not yet
  EXPECT_EQ(reader.poll(), Came::entries);
  EXPECT_EQ(reader.taken(), FeedCursor::kAtOnce);
  reader.catch_up();
  EXPECT_EQ(reader.taken(), wire::kFeedEntries);
  for (std::uint32_t i = 0; i <= wire::kFeedEntries; ++i) table_.move(i % 8, ++version);
  EXPECT_EQ(reader.poll(), Came::behind);
  EXPECT_TRUE(table_.knows_all(reader));
  reader.catch_up();
  EXPECT_EQ(reader.taken(), wire::kFeedEntries);
}

// Lines ahead of the tail are the writers' next: a reader that has just read them costs them time.
TEST_F(FeedCursorTest, NoEntryIsAskedForThatIsNotKnownToBeThere) {
  FeedReader reader = table_.follow();
  EXPECT_EQ(reader.cursor().entries_bytes(), 0u);
  reader.catch_up();
  EXPECT_EQ(reader.cursor().entries_bytes(), 0u);
  for (std::uint64_t version = 1; version <= 3; ++version) table_.move(0, version);
  reader.poll();
  EXPECT_EQ(reader.taken(), 0u);
  EXPECT_EQ(reader.cursor().entries_bytes(), 3 * sizeof(wire::FeedEntry));
  table_.move(0, 4);
  reader.poll();
  EXPECT_EQ(reader.taken(), 3u);
  EXPECT_EQ(reader.cursor().entries_bytes(), sizeof(wire::FeedEntry));
  reader.poll();
  EXPECT_EQ(reader.taken(), 4u);
  EXPECT_EQ(reader.cursor().entries_bytes(), 0u);
}

// Entries that were read later than the header.
TEST_F(FeedCursorTest, ALaterNumberInAnEntrysPlaceTellsToo) {
  FeedReader reader = table_.follow();
  reader.catch_up();
  table_.move(0, 1);
  reader.poll();
  const auto header = reader.landing().header;
  std::uint64_t version = 1;
  for (std::uint32_t i = 0; i < wire::kFeedEntries + 1; ++i) table_.move(i % 8, ++version);
  std::memcpy(reader.landing().entries.data(), table_.region().at(reader.cursor().entries_offset()),
              reader.cursor().entries_bytes());
  reader.landing().header = header;
  EXPECT_EQ(reader.take(), Came::behind);
  EXPECT_TRUE(table_.knows_all(reader)) << "what was read before the table is older";
  reader.catch_up();
  EXPECT_TRUE(table_.knows_all(reader));
}

// Each word of an entry may be of another moment: then it is awaited.
TEST_F(FeedCursorTest, HalvesOfEntriesAreNotTaken) {
  FeedReader reader = table_.follow();
  reader.catch_up();
  std::uint64_t version = 0;
  for (std::uint32_t i = 0; i < wire::kFeedEntries; ++i) {
    table_.move(i % 8, ++version);
    reader.catch_up();
  }
  EXPECT_EQ(halves_taken(table_, reader, ++version), 0u);
  reader.catch_up();
  EXPECT_TRUE(table_.knows_all(reader));
}

TEST_F(FeedCursorTest, AFeedOfAnotherMapOrOfNoneHasEnded) {
  FeedReader reader = table_.follow();
  reader.catch_up();
  const std::uint64_t at = reader.cursor().header_offset();
  for (const std::size_t field : {std::size_t{0}, std::size_t{4}, std::size_t{24}}) {
    std::byte* const word = table_.region().at(at + field);
    const auto before = base::load_shared<std::uint32_t>(word);
    base::store_shared<std::uint32_t>(word, before + 1);
    EXPECT_EQ(reader.poll(), Came::ended) << field;
    base::store_shared<std::uint32_t>(word, before);
    EXPECT_EQ(reader.poll(), Came::entries) << field;
  }
}

TEST_F(FeedCursorTest, PlacesOutsideTheRegionAreRefused) {
  const wire::FeedPlace good = *table_.table().feed().add_follower();
  EXPECT_TRUE(FeedCursor::create(good, table_.view()));
  for (const wire::FeedPlace bad :
       {wire::FeedPlace{0, 1, wire::kFeedEntries},
        wire::FeedPlace{good.offset + 8, 1, good.entries},
        wire::FeedPlace{good.offset, 1, good.entries + 1}, wire::FeedPlace{good.offset, 1, 0},
        wire::FeedPlace{~std::uint64_t{511}, 1, good.entries},
        wire::FeedPlace{table_.view().region_bytes - 512, 1, good.entries}}) {
    const auto refused = FeedCursor::create(bad, table_.view());
    ASSERT_FALSE(refused) << bad.offset;
    EXPECT_EQ(refused.error().code, Code::corrupt);
  }
}

// Whatever comes, nothing but entries of the number that is expected is taken, and reading goes on
// within the ring.
TEST_F(FeedCursorTest, RandomBytesDoNoHarm) {
  base::Random random(base::seed_from_environment(31));
  FeedReader reader = table_.follow();
  reader.catch_up();
  const std::uint64_t begin = reader.cursor().header_offset();
  const auto good = reader.landing().header;
  for (int i = 0; i < 20'000; ++i) {
    auto& landing = reader.landing();
    landing.header = good;
    for (auto& byte : landing.entries) byte = static_cast<std::byte>(random.below(4));
    if (random.below(2) == 0) {
      for (std::size_t at = 64; at < 80; ++at) {
        landing.header[at] = static_cast<std::byte>(random.below(256));
      }
    }
    ASSERT_NE(reader.take(), Came::ended);
    ASSERT_EQ(reader.taken(), 0u);
    const FeedCursor& cursor = reader.cursor();
    ASSERT_GE(cursor.entries_offset(), begin + sizeof(wire::FeedHeader));
    ASSERT_LE(cursor.entries_offset() + cursor.entries_bytes(), begin + wire::kFeedBytes);
  }
}

}  // namespace
}  // namespace espalier::place
