// SPDX-License-Identifier: Apache-2.0
// A program's own calls by many threads, on one object and on maps that are made and dropped.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/example_kind/own_calls_fixture.hpp"

namespace espalier::example {
namespace {

constexpr std::uint64_t kAddsEach = 200;

class OwnCallsConcurrency : public OwnCallsOverEachWay {
 protected:
  /// Adds to one tally, and counts in a map, be it there or not; on a node by a connection of its
  /// own, and in this process by the one store that there is.
  void work() {
    Store* store = &*store_;
    std::optional<Store> own;
    if (!is_embedded()) store = &own.emplace(connect());
    const auto tally = store->open_object(kTally, "words");
    ASSERT_TRUE(tally) << message(tally.error());
    const std::string counted = BytesWriter().text("m").text("k").bytes();
    for (std::uint64_t i = 0; i < kAddsEach; ++i) {
      const auto added = tally->call(kTallyAdd, "pear");
      EXPECT_TRUE(added) << message(added.error());
      const auto in_map = store->call(kCountIn, counted);
      if (!in_map) {
        EXPECT_EQ(in_map.error().error.code, Code::not_found);
      }
    }
  }
};

TEST_P(OwnCallsConcurrency, ThreadsShareObjectsWhileMapsComeAndGo) {
  ASSERT_TRUE(store_->create_object(kTally, "words"));
  std::atomic<bool> ended{false};
  // In this process the handles of a map must not be used while it is dropped.
  std::jthread maps([&] {
    if (is_embedded()) return;
    Store store = connect();
    while (!ended) {
      EXPECT_TRUE(store.create_map("m"));
      std::this_thread::yield();
      EXPECT_TRUE(store.drop_map("m"));
    }
  });
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 2; ++i) workers.emplace_back([this] { work(); });
  }
  ended = true;
  const auto tally = store_->open_object(kTally, "words");
  ASSERT_TRUE(tally);
  const auto all = tally->call(kTallyAll);
  ASSERT_TRUE(all);
  BytesReader words(*all);
  EXPECT_EQ(words.text(), "pear");
  EXPECT_EQ(words.take<std::uint64_t>(), 2 * kAddsEach);
}

INSTANTIATE_TEST_SUITE_P(Ways, OwnCallsConcurrency, ::testing::Values("embedded", "unix", "shm"),
                         test::way_name);

}  // namespace
}  // namespace espalier::example
