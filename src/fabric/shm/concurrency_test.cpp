// SPDX-License-Identifier: Apache-2.0
// Several threads, each with an endpoint: sleeping and waking, revoking in the middle, and atomics.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/random.hpp"
#include "fabric/shm/testing/shm_fixture.hpp"

namespace espalier::fabric::shm {
namespace {

// The next completion. The endpoint sleeps until there is one, which is what is tested here: it is
// woken by what comes, not by time.
Completion next_of(Side& side, CompletionQueue& queue) {
  while (true) {
    if (const auto completion = side.take(queue)) return *completion;
    side.endpoint->wait(kLong);
  }
}

void post_receive(Side& side, std::span<std::byte> into) {
  const Receive receive{1, into};
  ASSERT_EQ(side.pair->post_receives({&receive, 1}), 1u);
}

TEST(ShmConcurrency, WhoSleepsIsWokenByWhatComes) {
  Connected two;
  constexpr std::uint64_t kRounds = 2000;
  std::thread echo([&] {
    std::uint64_t number = 0;
    const auto bytes = std::as_writable_bytes(std::span(&number, 1));
    post_receive(two.target, bytes);
    for (std::uint64_t i = 0; i < kRounds; ++i) {
      ASSERT_EQ(next_of(two.target, two.target.receives).status, Status::success);
      ASSERT_EQ(number, i);
      post_receive(two.target, bytes);
      const std::uint64_t back = i + 1;
      two.target.pair->post(
          WorkRequest::send(1, std::as_bytes(std::span(&back, 1))).as_inline().unsignalled());
    }
  });
  std::uint64_t number = 0;
  const auto bytes = std::as_writable_bytes(std::span(&number, 1));
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    post_receive(two.client, bytes);
    const auto out = std::as_bytes(std::span(&i, 1));
    two.client.pair->post(WorkRequest::send(1, out));
    ASSERT_EQ(next_of(two.client, two.client.receives).status, Status::success);
    ASSERT_EQ(number, i + 1);
    ASSERT_EQ(next_of(two.client, two.client.sends).status, Status::success);
  }
  echo.join();
}

TEST(ShmConcurrency, WhoSleepsIsWokenByANumber) {
  Connected two;
  constexpr std::uint32_t kRounds = 500;
  for (std::uint32_t i = 0; i < 128; ++i) post_receive(two.target, {});
  std::thread sleeper([&] {
    for (std::uint32_t i = 0; i < kRounds; ++i) {
      const Completion completion = next_of(two.target, two.target.receives);
      ASSERT_EQ(completion.immediate, i);
      ASSERT_EQ(base::load_shared<std::uint64_t>(two.memory.at(8 * i)), i);
      post_receive(two.target, {});
    }
  });
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    const auto out = std::as_bytes(std::span(&i, 1));
    const std::uint64_t at = two.remote().at(8 * i);
    two.client.pair->post(
        WorkRequest::write(1, out, two.remote().key, at).as_inline().unsignalled());
    two.client.pair->post(WorkRequest::write_immediate(2, {}, 0, 0, static_cast<std::uint32_t>(i)));
    // There is room for so many.
    if (i % 50 == 49) {
      for (int completion = 0; completion < 50; ++completion) {
        ASSERT_EQ(next_of(two.client, two.client.sends).status, Status::success);
      }
    }
  }
  sleeper.join();
}

TEST(ShmConcurrency, LongMessagesPassBetweenSleepers) {
  Connected two;
  std::vector<std::byte> message(3 << 20);
  base::Random(base::seed_from_environment(21)).fill(message);
  std::vector<std::byte> into(message.size());
  post_receive(two.target, into);
  std::thread receiver(
      [&] { ASSERT_EQ(next_of(two.target, two.target.receives).bytes, message.size()); });
  two.client.pair->post(WorkRequest::send(1, message));
  EXPECT_EQ(next_of(two.client, two.client.sends).status, Status::success);
  receiver.join();
  EXPECT_EQ(into, message);
}

TEST(ShmConcurrency, ASleeperHearsThatTheConnectionHasEnded) {
  Connected two;
  std::thread sleeper([&] {
    while (two.target.pair->state() != QueuePair::State::error) {
      two.target.endpoint->wait(kLong);
      two.target.endpoint->progress();
    }
  });
  two.client.pair->close();
  sleeper.join();
  EXPECT_EQ(two.target.pair->ended_by(), Status::success);
}

TEST(ShmConcurrency, ASleeperHearsWhoKnocks) {
  base::TemporaryFolder folder;
  Side target;
  Side client;
  ASSERT_TRUE(target.endpoint->listen((folder / "s").string()));
  std::thread sleeper([&] {
    std::optional<ConnectRequest> request;
    while (!(request = target.endpoint->next_request())) {
      target.endpoint->wait(kLong);
      target.endpoint->progress();
    }
    target.pair = *target.endpoint->accept(*request, target.options(), {});
  });
  client.pair = *client.endpoint->connect((folder / "s").string(), client.options(), {});
  while (client.pair->state() == QueuePair::State::connecting) {
    client.endpoint->wait(kLong);
    client.endpoint->progress();
  }
  sleeper.join();
  EXPECT_EQ(client.pair->state(), QueuePair::State::connected);
}

TEST(ShmConcurrency, WakeEndsAWaitWhetherItHasBegunOrNot) {
  Side side;
  side.endpoint->wake();
  side.endpoint->wait(kLong);
  for (int i = 0; i < 100; ++i) {
    std::thread waker([&] { side.endpoint->wake(); });
    side.endpoint->wait(kLong);
    waker.join();
  }
  side.endpoint->wait(0);
  side.endpoint->wait(1000);
}

// What a READ that is a success has read was there while the key was good.
TEST(ShmConcurrency, NoReadSeesWhatWasWrittenAfterARevoke) {
  constexpr std::uint64_t kGood = 0x600D600D600D600D;
  constexpr std::size_t kBytes = 1024;
  base::Random random(base::seed_from_environment(22));
  std::uint64_t reads = 0;
  for (int round = 0; round < 30; ++round) {
    Connected two(kBytes);
    const auto fill = [&](std::uint64_t word) {
      for (std::size_t i = 0; i < kBytes; i += 8) base::store_shared(two.memory.at(i), word);
    };
    fill(kGood);
    std::array<std::uint64_t, kBytes / 8> local;
    const auto read = WorkRequest::read(1, std::as_writable_bytes(std::span(local)),
                                        two.remote().key, two.remote().base);
    ASSERT_EQ(two.run(read).status, Status::success);
    std::atomic<std::uint64_t> done{0};
    std::thread owner([&, wanted = random.below(3000)] {
      while (done.load(std::memory_order_relaxed) < wanted) std::this_thread::yield();
      two.region.revoke();
      fill(0xBAD);
    });
    Completion completion;
    do {
      two.client.pair->post(read);
      completion = *two.client.take(two.client.sends);
      done.fetch_add(1, std::memory_order_relaxed);
      if (completion.status == Status::success) {
        ASSERT_TRUE(std::all_of(local.begin(), local.end(), [](auto w) { return w == kGood; }));
        ++reads;
      }
    } while (completion.status == Status::success);
    EXPECT_EQ(completion.status, Status::remote_access);
    owner.join();
  }
  EXPECT_GT(reads, 0u);
}

TEST(ShmConcurrency, AtomicsAreAtomicAmongAllAndWithTheProcessor) {
  constexpr std::uint64_t kEach = 20000;
  base::TemporaryFolder folder;
  Side target;
  auto memory = *memory::SharedMemory::create("counter", 4096);
  const auto region = target.table->offer({memory.at(0), 4096, memory.descriptor(), 0}, kAllRights);
  ASSERT_TRUE(target.endpoint->listen((folder / "s").string()));
  Side clients[2];
  std::vector<std::unique_ptr<QueuePair>> kept;
  for (Side& client : clients) {
    connect(client, target, (folder / "s").string(), client.options(), target.options());
    kept.push_back(std::move(target.pair));
  }
  std::vector<std::thread> threads;
  for (Side& client : clients) {
    threads.emplace_back([&] {
      const RemoteRegion& remote = region->remote();
      const auto add = WorkRequest::fetch_add(1, remote.key, remote.base, 1);
      for (std::uint64_t i = 1; i <= kEach; ++i) {
        // Until the memory is mapped there is room for so many only.
        while (client.pair->post(i < kEach ? add.unsignalled() : add).taken == 0) {
          client.endpoint->progress();
        }
      }
      static_cast<void>(next_of(client, client.sends));
    });
  }
  for (std::uint64_t i = 0; i < kEach; ++i) {
    base::shared<std::uint64_t>(memory.at(0)).fetch_add(1, std::memory_order_relaxed);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(base::load_shared<std::uint64_t>(memory.at(0)), 3 * kEach);
}

}  // namespace
}  // namespace espalier::fabric::shm
