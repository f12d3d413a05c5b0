// SPDX-License-Identifier: Apache-2.0
// Void keys over every transport: a READ brings zeros and its pair lives on, all else is refused,
// and what was under way brings nothing that was written later. void_keys_concurrency_test.cpp has
// threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "fabric/testing/fabric_fixture.hpp"

namespace espalier::fabric {
namespace {

constexpr std::size_t kLine = 64;

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

/// Whether each line is zeros, or as it was.
bool lines_are_old_or_zero(std::span<const std::byte> got, std::span<const std::byte> old) {
  for (std::size_t i = 0; i < got.size(); i += kLine) {
    const auto line = got.subspan(i, std::min(kLine, got.size() - i));
    if (!all_zero(line) && !std::equal(line.begin(), line.end(), old.begin() + i)) return false;
  }
  return true;
}

class FabricVoidKeys : public ::testing::TestWithParam<FabricTransport> {
 protected:
  FabricVoidKeys() : seed(base::seed_from_environment(23)), scene(GetParam(), seed) {
    scene.random.fill(scene.far_bytes());
  }
  [[nodiscard]] RegionKey key() const { return scene.region.remote().key; }
  [[nodiscard]] std::uint64_t at(std::uint64_t offset) const {
    return scene.region.remote().at(offset);
  }
  /// What the owner does with memory that is its own again.
  void use_again() { std::fill(scene.far_bytes().begin(), scene.far_bytes().end(), kUsedAgain); }
  Completion read(QueuePair& pair, std::span<std::byte> into, std::uint64_t offset) {
    std::fill(into.begin(), into.end(), std::byte{0xEE});
    return scene.run(pair, WorkRequest::read(1, into, key(), at(offset)));
  }

  static constexpr std::byte kUsedAgain{0xBD};
  std::uint64_t seed;
  FabricScene scene;
};

TEST_P(FabricVoidKeys, AReadBringsZerosAndThePairLivesOn) {
  const auto pair = scene.connect();
  std::vector<std::byte> into(100'000);
  ASSERT_EQ(read(*pair.near, into, 0).status, Status::success);
  ASSERT_TRUE(std::equal(into.begin(), into.end(), scene.far_bytes().begin()));
  scene.region.make_void();
  use_again();
  for (const std::size_t length : {1u, 7u, 8u, 63u, 64u, 65u, 1024u, 4097u, 100'000u}) {
    for (const std::uint64_t offset : {0u, 1u, 4093u}) {
      const auto part = std::span(into).first(length);
      const Completion ended = read(*pair.near, part, offset);
      ASSERT_EQ(ended.status, Status::success) << length;
      EXPECT_EQ(ended.bytes, length);
      EXPECT_TRUE(all_zero(part)) << length;
    }
  }
  EXPECT_EQ(pair.near->state(), QueuePair::State::connected);
  EXPECT_EQ(pair.far->state(), QueuePair::State::connected);
}

// A peer that maps memory has not mapped this, and learns its bounds all the same.
TEST_P(FabricVoidKeys, SoDoesTheFirstReadByAKeyThatIsVoidAlready) {
  scene.region.make_void();
  const auto pair = scene.connect();
  std::array<std::byte, 256> into;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(read(*pair.near, into, 64).status, Status::success);
    EXPECT_TRUE(all_zero(into));
  }
  const auto past = WorkRequest::read(1, into, key(), at(FabricScene::kRegionBytes - 255));
  EXPECT_EQ(scene.run(*pair.near, past).status, Status::remote_access);
}

TEST_P(FabricVoidKeys, AllElseByItIsRefused) {
  const std::vector<std::byte> mark(8, std::byte{0xAA});
  for (const bool known_before : {true, false}) {
    for (std::size_t kind = 0; kind < 4; ++kind) {
      auto offered = scene.offer();
      const RegionKey with = offered.remote().key;
      const std::uint64_t where = offered.remote().at(64);
      const auto pair = scene.connect();
      const Receive receive{};
      pair.far->post_receives({&receive, 1});
      std::array<std::byte, 8> into;
      if (known_before) {
        ASSERT_EQ(scene.run(*pair.near, WorkRequest::read(9, into, with, where)).status,
                  Status::success);
      }
      offered.make_void();
      std::fill(scene.far_bytes().begin(), scene.far_bytes().end(), std::byte{1});
      const std::array requests{WorkRequest::write(1, mark, with, where),
                                WorkRequest::write_immediate(2, mark, with, where, 5),
                                WorkRequest::fetch_add(3, with, where, 1),
                                WorkRequest::compare_swap(4, with, where, 0, 1)};
      EXPECT_EQ(scene.run(*pair.near, requests[kind]).status, Status::remote_access)
          << name(requests[kind].opcode);
      EXPECT_EQ(pair.near->state(), QueuePair::State::error);
      EXPECT_TRUE(std::all_of(scene.far_bytes().begin(), scene.far_bytes().end(),
                              [](std::byte b) { return b == std::byte{1}; }));
      scene.await([&] { return pair.far->state() == QueuePair::State::error; });
      EXPECT_NE(scene.far_completions(1)[0].status, Status::success);
    }
  }
}

TEST_P(FabricVoidKeys, BoundsRightsAndDomainsCountAsBefore) {
  std::array<std::byte, 8> into;
  const auto status = [&](Registration& region, std::uint64_t offset, Domain domain) {
    region.make_void();
    QueuePairOptions far;
    far.domain = domain;
    const auto pair = scene.connect({}, far);
    const RemoteRegion& remote = region.remote();
    return scene.run(*pair.near, WorkRequest::read(1, into, remote.key, remote.at(offset))).status;
  };
  auto of_domain = scene.offer(kAllRights, 8);
  EXPECT_EQ(status(of_domain, 0, 8), Status::success);
  EXPECT_EQ(status(of_domain, 0, 0), Status::remote_access);
  auto to_write = scene.offer(RemoteRights::write);
  EXPECT_EQ(status(to_write, 0, 0), Status::remote_access);
  auto to_read = scene.offer(RemoteRights::read);
  EXPECT_EQ(status(to_read, FabricScene::kRegionBytes - 8, 0), Status::success);
  EXPECT_EQ(status(to_read, FabricScene::kRegionBytes - 7, 0), Status::remote_access);
  EXPECT_EQ(status(to_read, ~std::uint64_t{0} - 3, 0), Status::remote_access);
}

TEST_P(FabricVoidKeys, RevokingItEndsTheZeros) {
  const auto pair = scene.connect();
  std::array<std::byte, 8> into;
  scene.region.make_void();
  ASSERT_EQ(read(*pair.near, into, 0).status, Status::success);
  const RemoteRegion gone = scene.region.remote();
  scene.region.revoke();
  const auto again = scene.offer();
  EXPECT_NE(again.remote().key, gone.key);
  EXPECT_EQ(scene.run(*pair.near, WorkRequest::read(1, into, gone.key, gone.base)).status,
            Status::remote_access);
}

// READs of all lengths are on their way when the key is made void, and at that moment the memory is
// used for something else.
TEST_P(FabricVoidKeys, ReadsUnderWayBringWhatWasThereOrZeros) {
  const int rounds = static_cast<int>(24 / GetParam().effort);
  constexpr std::size_t kReads = 12;
  constexpr std::size_t kMost = 20'000;
  const auto pair = scene.connect();
  std::vector<std::byte> into(kReads * kMost);
  std::size_t old = 0;
  std::size_t zeros = 0;
  std::size_t mixed = 0;
  for (int round = 0; round < rounds; ++round) {
    scene.random.fill(scene.far_bytes());
    const std::vector<std::byte> before(scene.far_bytes().begin(), scene.far_bytes().end());
    auto region = scene.offer();
    const RemoteRegion& remote = region.remote();
    // So that a peer which maps memory has it mapped.
    ASSERT_EQ(scene
                  .run(*pair.near,
                       WorkRequest::read(0, std::span(into).first(8), remote.key, remote.base))
                  .status,
              Status::success);
    std::vector<WorkRequest> reads;
    for (std::size_t i = 0; i < 2 * kReads; ++i) {
      const std::size_t length = scene.random.chance(0.5) ? 64 : scene.random.between(65, kMost);
      reads.push_back(WorkRequest::read(i, std::span(into).subspan(i % kReads * kMost, length),
                                        remote.key, remote.at(i * 40 * kLine)));
    }
    ASSERT_EQ(pair.near->post(std::span(reads).first(kReads)).taken, kReads);
    scene.idle(static_cast<int>(scene.random.below(scene.random.chance(0.5) ? 6 : 60)));
    region.make_void();
    use_again();
    // These are posted afterwards, into other memory.
    std::vector<std::vector<std::byte>> late(kReads, std::vector<std::byte>(kMost, kUsedAgain));
    for (std::size_t i = kReads; i < 2 * kReads; ++i) {
      reads[i].local = late[i - kReads].data();
      ASSERT_EQ(pair.near->post(reads[i]).taken, 1u);
    }
    for (const Completion& ended : scene.near_completions(2 * kReads)) {
      ASSERT_EQ(ended.status, Status::success);
      const WorkRequest& read = reads[ended.work_id];
      const std::span<const std::byte> got(read.local, read.bytes);
      const auto was = std::span(before).subspan(ended.work_id * 40 * kLine, read.bytes);
      if (ended.work_id >= kReads) {
        EXPECT_TRUE(all_zero(got));
      } else if (all_zero(got)) {
        ++zeros;
      } else {
        (std::equal(got.begin(), got.end(), was.begin()) ? old : mixed) += 1;
        EXPECT_TRUE(lines_are_old_or_zero(got, was)) << round;
      }
    }
  }
  EXPECT_EQ(pair.near->state(), QueuePair::State::connected);
  RecordProperty("old", std::to_string(old));
  RecordProperty("zeros", std::to_string(zeros));
  RecordProperty("mixed", std::to_string(mixed));
}

INSTANTIATE_TEST_SUITE_P(Transports, FabricVoidKeys, ::testing::ValuesIn(fabric_transports()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace espalier::fabric
