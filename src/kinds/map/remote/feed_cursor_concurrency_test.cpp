// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/barrier.hpp"
#include "kinds/map/remote/testing/feed_table.hpp"

namespace espalier::place {
namespace {

constexpr std::uint32_t kWriters = 3;
constexpr std::uint32_t kLids = 12;

// Each writer has LIDs of its own, as each holds the locks of its nodes. Goes on until `enough`.
std::vector<std::thread> write(FeedTable& table, std::uint64_t from, std::uint64_t moves,
                               const std::atomic<bool>& enough) {
  std::vector<std::thread> threads;
  for (std::uint32_t writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&table, &enough, from, moves, writer] {
      for (std::uint64_t i = 0; i < moves || !enough; ++i) {
        table.move(writer + kWriters * (i % (kLids / kWriters)), from + i);
      }
    });
  }
  return threads;
}

// Entries are whole and in order for each LID, whether or not the reader keeps up, and in the end
// the reader knows all places.
TEST(FeedCursorConcurrency, AReaderKnowsWhereNodesAreInTheEnd) {
  FeedTable table(kLids);
  FeedReader reader = table.follow();
  reader.poll();
  std::atomic<bool> enough{false};
  auto writers = write(table, 1, 20'000, enough);
  while (reader.taken() < 5000) reader.poll();
  enough = true;
  for (std::thread& thread : writers) thread.join();
  reader.catch_up();
  EXPECT_EQ(reader.wrong(), 0u);
  EXPECT_TRUE(table.knows_all(reader));
}

// Readers that come and go while nodes move. Where barriers are not asymmetric a change of the
// moment in which the feed is turned on may be missed.
TEST(FeedCursorConcurrency, ReadersBeginWhileNodesMove) {
  FeedTable table(kLids);
  const bool exact = base::register_asymmetric_barriers();
  std::atomic<bool> enough{false};
  for (std::uint64_t round = 0; round < 50; ++round) {
    enough = false;
    auto writers = write(table, 1 + round * 100'000, 50, enough);
    FeedReader reader = table.follow();
    for (int i = 0; i < 20; ++i) reader.poll();
    enough = true;
    for (std::thread& thread : writers) thread.join();
    reader.catch_up();
    EXPECT_EQ(reader.wrong(), 0u);
    if (exact) {
      EXPECT_TRUE(table.knows_all(reader)) << round;
    }
    table.table().feed().remove_follower();
  }
}

}  // namespace
}  // namespace espalier::place
