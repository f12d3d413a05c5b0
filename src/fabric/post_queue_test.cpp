// SPDX-License-Identifier: Apache-2.0
#include "fabric/post_queue.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <numeric>

#include "fabric/testing/fabric_fixture.hpp"
#include "fabric/testing/post_queue_checks.hpp"

namespace espalier::fabric {
namespace {

class PostQueues : public ::testing::TestWithParam<FabricTransport> {
 protected:
  PostQueues() : scene(GetParam(), base::seed_from_environment(70)) {
    std::iota(words.begin(), words.end(), 1);
  }
  [[nodiscard]] WorkRequest write(std::size_t word, RegionKey key) const {
    return WorkRequest::write(0, std::as_bytes(std::span(&words[word], 1)), key,
                              scene.region.remote().at(word * 8));
  }
  [[nodiscard]] WorkRequest write(std::size_t word) const {
    return write(word, scene.region.remote().key);
  }
  [[nodiscard]] std::uint64_t far_word(std::size_t word) const {
    std::uint64_t there = 0;
    std::memcpy(&there, scene.far_bytes().data() + word * 8, 8);
    return there;
  }
  /// Waits until so many have ended.
  std::vector<PostQueue::Ended> ends(PostQueue& queue, std::size_t count) {
    std::vector<PostQueue::Ended> all;
    scene.await([&] {
      Completion completion;
      while (scene.near_queue.poll({&completion, 1}) == 1) queue.completed(completion);
      for (const PostQueue::Ended& end : queue.ends()) all.push_back(end);
      return all.size() >= count;
    });
    return all;
  }

  FabricScene scene;
  std::vector<std::uint64_t> words = std::vector<std::uint64_t>(256);
};

TEST_P(PostQueues, ADoorbellLeavesTogetherAndIsToldByItsLast) {
  const auto pair = scene.connect();
  PostQueue queue(64, 32);
  queue.attach(*pair.near);
  for (std::size_t word = 0; word < 20; ++word) ASSERT_TRUE(queue.add(write(word), word));
  scene.idle(20);
  EXPECT_EQ(far_word(0), 0u);  // nothing leaves before the doorbell
  queue.ring();
  const auto all = ends(queue, 20);
  ASSERT_EQ(all.size(), 20u);
  for (std::size_t word = 0; word < 20; ++word) {
    EXPECT_EQ(all[word], (PostQueue::Ended{word, PostEnd::done, Status::success}));
    EXPECT_EQ(far_word(word), words[word]);
  }
  EXPECT_EQ(queue.counts().posts, 20u);
  EXPECT_EQ(queue.counts().doorbells, 1u);
  EXPECT_EQ(queue.counts().completions, 1u);
  EXPECT_EQ(queue.counts().failures, 0u);
}

TEST_P(PostQueues, EachKthIsSignalled) {
  const auto pair = scene.connect();
  PostQueue queue(64, 8);
  queue.attach(*pair.near);
  for (std::size_t word = 0; word < 40; ++word) ASSERT_TRUE(queue.add(write(word), word));
  queue.ring();
  EXPECT_EQ(ends(queue, 40).size(), 40u);
  EXPECT_EQ(queue.counts().completions, 5u);
}

TEST_P(PostQueues, WhatIsToEndByItselfIsSignalledToo) {
  const auto pair = scene.connect();
  PostQueue queue(64, 32);
  queue.attach(*pair.near);
  for (std::size_t word = 0; word < 12; ++word) {
    const bool alone = word == 3 || word == 7;
    ASSERT_TRUE(queue.add(write(word), word,
                          alone ? PostQueue::Signal::by_itself : PostQueue::Signal::with_others));
  }
  queue.ring();
  EXPECT_EQ(ends(queue, 12).size(), 12u);
  EXPECT_EQ(queue.counts().completions, 3u);
}

// A connection that fails is made again, and its pair may get the number of the one before.
TEST_P(PostQueues, ACompletionOfAnEarlierPairChangesNothing) {
  auto pair = scene.connect();
  PostQueue queue(8, 4);
  queue.attach(*pair.near);
  for (std::size_t word = 0; word < 4; ++word) ASSERT_TRUE(queue.add(write(word), word));
  queue.ring();
  pair.near->close();
  const std::uint32_t number = pair.near->number();
  queue.detach();
  EXPECT_EQ(ends(queue, 4).size(), 4u);
  pair.far->close();
  pair = scene.connect();
  queue.attach(*pair.near);
  ASSERT_TRUE(queue.add(write(9), 9));
  queue.ring();
  Completion late;
  late.pair = pair.near->number();
  late.work_id = 3;
  queue.completed(late);
  late.pair = number;
  queue.completed(late);
  const auto all = ends(queue, 1);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0], (PostQueue::Ended{9, PostEnd::done, Status::success}));
}

TEST_P(PostQueues, WhatIsReadIsThereWhenItsEndIsTold) {
  const auto pair = scene.connect();
  scene.random.fill(scene.far_bytes());
  PostQueue queue(64, 32);
  queue.attach(*pair.near);
  std::vector<std::byte> into(30 * 100);
  for (std::size_t i = 0; i < 30; ++i) {
    const auto part = std::span(into).subspan(i * 100, 100);
    const RemoteRegion remote = scene.region.remote();
    ASSERT_TRUE(queue.add(WorkRequest::read(0, part, remote.key, remote.at(i * 100)), i));
  }
  queue.ring();
  EXPECT_EQ(ends(queue, 30).size(), 30u);
  EXPECT_EQ(std::memcmp(into.data(), scene.far_bytes().data(), into.size()), 0);
  EXPECT_EQ(queue.counts().completions, 1u);
}

TEST_P(PostQueues, AFullQueueTakesMoreWhenSomethingHasEnded) {
  const auto pair = scene.connect();
  PostQueue queue(8, 4);
  queue.attach(*pair.near);
  for (std::size_t word = 0; word < 8; ++word) ASSERT_TRUE(queue.add(write(word), word));
  EXPECT_FALSE(queue.has_room());
  EXPECT_FALSE(queue.add(write(8), 8));
  queue.ring();
  EXPECT_FALSE(queue.add(write(8), 8));
  EXPECT_EQ(ends(queue, 8).size(), 8u);
  EXPECT_TRUE(queue.add(write(8), 8));
  queue.ring();
  const auto more = ends(queue, 1);
  ASSERT_EQ(more.size(), 1u);
  EXPECT_EQ(more[0].owner, 8u);
}

TEST_P(PostQueues, AFailureTellsEachBehindItThatItsEndIsNotKnown) {
  const auto pair = scene.connect();
  PostQueue queue(64, 32);
  queue.attach(*pair.near);
  const RegionKey wrong = scene.region.remote().key ^ 0x00100000;
  std::array<std::byte, 8> into{};
  const auto read = WorkRequest::read(0, into, wrong, scene.region.remote().base);
  for (std::size_t word = 0; word < 11; ++word) {
    ASSERT_TRUE(queue.add(word == 5 ? read : write(word), word));
  }
  queue.ring();
  auto all = ends(queue, 11);
  ASSERT_EQ(all.size(), 11u);
  for (std::size_t word = 0; word < 5; ++word) {
    EXPECT_EQ(all[word].how, PostEnd::done);
    EXPECT_EQ(far_word(word), words[word]);
  }
  EXPECT_EQ(all[5].how, PostEnd::refused);
  EXPECT_EQ(all[5].status, Status::remote_access);
  for (std::size_t word = 6; word < 11; ++word) EXPECT_EQ(all[word].how, PostEnd::unknown);
  // What is added to a pair that has ended does not leave.
  ASSERT_TRUE(queue.add(write(20), 20));
  queue.ring();
  queue.detach();
  all = ends(queue, 1);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0], (PostQueue::Ended{20, PostEnd::not_sent, Status::flushed}));
  EXPECT_EQ(far_word(20), 0u);
  EXPECT_EQ(queue.counts().failures, 7u);
  EXPECT_EQ(queue.pending(), 0u);
}

TEST_P(PostQueues, WhatWaitsForAPairLeavesByTheNextOne) {
  PostQueue queue(8, 4);
  ASSERT_TRUE(queue.add(write(0), 0));
  queue.ring();
  EXPECT_EQ(queue.pending(), 1u);
  const auto pair = scene.connect();
  queue.attach(*pair.near);
  queue.ring();
  ASSERT_EQ(ends(queue, 1).size(), 1u);
  EXPECT_EQ(far_word(0), words[0]);
}

INSTANTIATE_TEST_SUITE_P(Transports, PostQueues, ::testing::ValuesIn(fabric_transports()),
                         [](const auto& each) { return each.param.name; });

TEST(PostQueueSim, WhatLeftEndsThoughNothingFollows) {
  const std::uint64_t seed = base::seed_from_environment(72);
  for (std::uint64_t i = 0; i < 50; ++i) {
    ASSERT_EQ(post_queue_in_peace(seed + i), "") << "seed " << seed + i;
    ASSERT_EQ(post_queue_in_peace(seed + i, sim::Faults::harsh()), "") << "seed " << seed + i;
  }
}

TEST(PostQueueSim, EachEndsOnceInOrderWhateverBecomesOfThePairs) {
  const std::uint64_t seed = base::seed_from_environment(71);
  for (std::uint64_t i = 0; i < 50; ++i) {
    ASSERT_EQ(post_queue_under_failures(seed + i), "") << "seed " << seed + i;
    ASSERT_EQ(post_queue_under_failures(seed + i, sim::Faults::harsh()), "") << "seed " << seed + i;
  }
}

}  // namespace
}  // namespace espalier::fabric
