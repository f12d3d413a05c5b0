// SPDX-License-Identifier: Apache-2.0
// Void keys while threads read by them: at the table itself, over `shm`, where a peer loads by
// itself, and over one transport of each kind.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>
#include <thread>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/random.hpp"
#include "fabric/testing/fabric_fixture.hpp"
#include "fabric/testing/void_key_checks.hpp"

namespace espalier::fabric {
namespace {

TEST(VoidKeysConcurrency, MakingOneVoidWaitsForAccesses) {
  EXPECT_EQ(void_keys_under_readers(base::seed_from_environment(60), 50), "");
}

TEST(VoidKeysConcurrency, AReadOverShmBringsAllOfTheOldOrZeros) {
  EXPECT_EQ(void_keys_over_shm(base::seed_from_environment(62), 30), "");
}

/// Those whose two sides may be two threads, one of each kind.
std::vector<FabricTransport> threaded_transports() {
  std::vector<FabricTransport> chosen;
  for (FabricTransport& each : fabric_transports()) {
    constexpr std::string_view kChosen[] = {"shm", "roce_memory", "roce_udp", "ofi_tcp"};
    if (std::find(std::begin(kChosen), std::end(kChosen), each.name) != std::end(kChosen)) {
      chosen.push_back(std::move(each));
    }
  }
  return chosen;
}

class FabricVoidConcurrency : public ::testing::TestWithParam<FabricTransport> {};

// The far side's endpoint has a thread, the near side READs in another, and in a third the owner of
// the memory makes keys void and immediately writes something else.
TEST_P(FabricVoidConcurrency, NoReadBringsWhatWasWrittenAfterwards) {
  constexpr int kRounds = 15;
  constexpr std::size_t kBytes = 16'384;
  constexpr std::size_t kLineWords = 8;
  constexpr std::uint64_t kBad = 0xBAD0BAD0BAD0BAD0;
  FabricScene scene(GetParam(), base::seed_from_environment(24));
  const auto pair = scene.connect();
  std::byte* const memory = scene.far_memory.at;
  const auto fill = [&](std::uint64_t word) {
    for (std::size_t i = 0; i < kBytes; i += 8) base::store_shared(memory + i, word);
  };
  std::atomic<bool> stop{false};
  std::jthread target([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      scene.link->far().progress();
      std::this_thread::yield();
    }
  });
  std::array<std::uint64_t, kBytes / 8> words;
  const auto all_are = [&](std::uint64_t word) {
    return std::all_of(words.begin(), words.end(), [word](auto w) { return w == word; });
  };
  std::uint64_t old = 0;
  const auto read_once = [&](const RemoteRegion& remote, std::uint64_t good) {
    const auto request =
        WorkRequest::read(1, std::as_writable_bytes(std::span(words)), remote.key, remote.base);
    EXPECT_EQ(pair.near->post(request).taken, 1u);
    Completion ended;
    while (scene.near_queue.poll({&ended, 1}) == 0) std::this_thread::yield();
    ASSERT_EQ(ended.status, Status::success);
    for (std::size_t line = 0; line < words.size(); line += kLineWords) {
      const auto one = std::span(words).subspan(line, kLineWords);
      ASSERT_TRUE(one[0] == good || one[0] == 0) << one[0];
      ASSERT_TRUE(std::all_of(one.begin(), one.end(), [&](auto w) { return w == one[0]; }));
    }
    old += words[0] == good ? 1 : 0;
  };
  for (std::uint64_t round = 1; round <= kRounds && !::testing::Test::HasFailure(); ++round) {
    fill(round);
    Registration region = *scene.link->far().regions().offer(
        {memory, kBytes, scene.far_memory.descriptor, scene.far_memory.descriptor_offset},
        RemoteRights::read);
    const RemoteRegion remote = region.remote();
    read_once(remote, round);
    ASSERT_EQ(words[0], round);
    std::atomic<bool> is_void{false};
    std::atomic<std::uint64_t> reads{0};
    std::jthread owner([&, wanted = scene.random.below(20)] {
      while (reads.load(std::memory_order_relaxed) < wanted) std::this_thread::yield();
      region.make_void();
      is_void.store(true);
      fill(kBad);
    });
    for (bool last = false; !last && !::testing::Test::HasFailure();) {
      last = is_void.load();
      read_once(remote, round);
      reads.fetch_add(1, std::memory_order_relaxed);
      // What was asked for after make_void() had returned.
      EXPECT_TRUE(!last || all_are(0));
    }
    reads.store(1'000'000);
    owner.join();
    region.revoke();
  }
  stop.store(true);
  EXPECT_GE(old, std::uint64_t{kRounds});
}

INSTANTIATE_TEST_SUITE_P(Transports, FabricVoidConcurrency,
                         ::testing::ValuesIn(threaded_transports()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace espalier::fabric
