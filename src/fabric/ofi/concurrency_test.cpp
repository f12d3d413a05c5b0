// SPDX-License-Identifier: Apache-2.0
// Several threads, each with an endpoint: sleeping and being woken, and a target whose own thread
// does nothing while another makes its progress.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "fabric/ofi/testing/ofi_fixture.hpp"

namespace espalier::fabric::ofi {
namespace {

constexpr std::uint64_t kLong = 60'000'000'000;

/// Serves until it is stopped, and sleeps in between.
class ServingThread {
 public:
  explicit ServingThread(Server& server) : server_(server), thread_([this] { serve(); }) {}
  ~ServingThread() {
    stop_.store(true);
    server_.endpoint->wake();
    thread_.join();
  }

 private:
  void serve() {
    while (!stop_.load()) {
      server_.turn();
      server_.endpoint->wait(kLong);
    }
    server_.pairs.clear();
  }

  Server& server_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

Completion next_of(Client& client) {
  Completion completion;
  while (client.queue.poll({&completion, 1}) == 0) client.endpoint->wait(kLong);
  return completion;
}

// libfabric's own shared memory stops for ever at the 1024th READ if the target sleeps.
TEST(OfiConcurrency, ATargetThatSleepsIsReadAsOftenAsOneLikes) {
  Server server;
  for (std::size_t i = 0; i < Server::kBytes; i += 8) {
    base::store_plain<std::uint64_t>(server.memory.data() + i, i);
  }
  const RemoteRegion remote = server.remote();
  Client client(server.address());
  const ServingThread thread(server);
  constexpr std::uint64_t kReads = 5000;
  constexpr std::uint64_t kInFlight = 32;
  std::vector<std::array<std::byte, 8>> into(kInFlight);
  std::uint64_t posted = 0;
  for (std::uint64_t ended = 0; ended < kReads; ++ended) {
    for (; posted < kReads && posted - ended < kInFlight; ++posted) {
      const std::uint64_t offset = posted * 8 % Server::kBytes;
      ASSERT_EQ(client.pair
                    ->post(WorkRequest::read(posted, into[posted % kInFlight], remote.key,
                                             remote.at(offset)))
                    .taken,
                1u);
    }
    const Completion completion = next_of(client);
    ASSERT_EQ(completion.work_id, ended);
    ASSERT_EQ(completion.status, Status::success);
    ASSERT_EQ(base::load_plain<std::uint64_t>(into[ended % kInFlight].data()),
              ended * 8 % Server::kBytes);
  }
}

TEST(OfiConcurrency, WhoSleepsIsWokenByWhatComes) {
  Server server;
  Client client(server.address());
  const RemoteRegion remote = server.remote();
  const ServingThread thread(server);
  for (std::uint64_t i = 0; i < 500; ++i) {
    client.pair->post(WorkRequest::fetch_add(i, remote.key, remote.at(0), 1));
    const Completion completion = next_of(client);
    ASSERT_EQ(completion.status, Status::success);
    ASSERT_EQ(completion.old_value, i);
  }
}

TEST(OfiConcurrency, AtomicsOfManyAndOfTheProcessorAddUp) {
  Server server;
  const RemoteRegion remote = server.remote();
  const std::string address = server.address();
  constexpr int kThreads = 3;
  constexpr std::uint64_t kEach = 300;
  {
    const ServingThread serving(server);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&address, remote] {
        Client client(address);
        for (std::uint64_t k = 0; k < kEach; ++k) {
          client.pair->post(WorkRequest::fetch_add(k, remote.key, remote.at(8), 1));
          ASSERT_EQ(next_of(client).status, Status::success);
        }
      });
    }
    for (std::uint64_t k = 0; k < kEach; ++k) {
      base::shared<std::uint64_t>(server.memory.data() + 8).fetch_add(1);
      std::this_thread::yield();
    }
    for (auto& each : threads) each.join();
  }
  EXPECT_EQ(base::load_plain<std::uint64_t>(server.memory.data() + 8), (kThreads + 1) * kEach);
}

// What is revoked is not read any more once revoke() has returned, whichever thread makes progress.
TEST(OfiConcurrency, RevokingFromAnotherThreadEndsAccess) {
  Server server;
  for (int round = 0; round < 20; ++round) {
    Client client(server.address());
    std::vector<std::byte> own(8192, std::byte{1});
    auto region = *server.regions->offer({own.data(), own.size(), -1, 0}, RemoteRights::read);
    const RemoteRegion remote = region.remote();
    const ServingThread thread(server);
    std::vector<std::byte> into(8192);
    std::uint64_t good = 0;
    for (;; ++good) {
      client.pair->post(WorkRequest::read(1, into, remote.key, remote.base));
      if (good == 3) {
        region.revoke();
        std::fill(own.begin(), own.end(), std::byte{2});  // it is ours again
      }
      const Completion completion = next_of(client);
      if (completion.status != Status::success) {
        ASSERT_EQ(completion.status, Status::remote_access);
        break;
      }
      ASSERT_EQ(std::count(into.begin(), into.end(), std::byte{1}), 8192);
      ASSERT_LE(good, 4u);
    }
  }
}

}  // namespace
}  // namespace espalier::fabric::ofi
