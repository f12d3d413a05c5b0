// SPDX-License-Identifier: Apache-2.0
// The keepalive thread, and its purpose: a node that probes silent clients, over real sockets.
#include "channel/rings/keepalive_thread.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "channel/rings/fabric_connection.hpp"
#include "channel/rings/thread_rings.hpp"
#include "engine/fabric_clients.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "fabric/address.hpp"

namespace espalier::client {
namespace {

struct Counted final : KeepaliveTarget {
  void keep() override { ++times; }
  std::atomic<int> times{0};
};

void await(const std::atomic<int>& times, int more) {
  const int until = times + more;
  while (times < until) std::this_thread::yield();
}

TEST(KeepaliveThreadConcurrency, WorksForEachUntilItIsRemoved) {
  Counted first;
  Counted second;
  const auto keepalive = KeepaliveThread::of_process();
  EXPECT_EQ(KeepaliveThread::of_process(), keepalive);
  keepalive->add(first);
  keepalive->add(second);
  await(first.times, 2);
  await(second.times, 1);
  keepalive->remove(first);
  const int then = first.times;
  await(second.times, 2);
  EXPECT_EQ(first.times, then);
  keepalive->remove(second);
}

TEST(KeepaliveThreadConcurrency, ThereIsANewOneAfterTheLastHasGone) {
  std::weak_ptr<KeepaliveThread> gone = KeepaliveThread::of_process();
  EXPECT_TRUE(gone.expired());
  Counted counted;
  const auto keepalive = KeepaliveThread::of_process();
  keepalive->add(counted);
  await(counted.times, 1);
  keepalive->remove(counted);
}

// A fork may catch the thread at any point.
TEST(KeepaliveThreadConcurrency, ACopyInAForkedProcessEndsInPeace) {
  Counted counted;
  auto keepalive = KeepaliveThread::of_process();
  keepalive->add(counted);
  await(counted.times, 1);
  const pid_t child = ::fork();
  if (child == 0) {
    keepalive->remove(counted);
    keepalive.reset();
    ::_exit(7);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  keepalive->remove(counted);
}

/// A node's end, run by a thread of its own, that probes after 10 ms of silence.
class ImpatientNode {
 public:
  explicit ImpatientNode(std::uint64_t pair_timeout_ns) {
    auto address = fabric::parse("roce://127.0.0.1:0/1");
    auto listening =
        fabric::open_for_listening(*address, std::move(*fabric::RegionTable::create()));
    listens_at_ = listening->address;
    offload::FabricClientsOptions options;
    options.silence_ns = 10'000'000;
    options.resume_ns = 100'000'000;
    options.pair_timeout_ns = pair_timeout_ns;
    clients_ = std::make_unique<offload::FabricClients>(std::move(listening->endpoint),
                                                        serving_.services(), serving_.scheduler(),
                                                        serving_.doorbells(), std::move(options));
    serving_.client_table().on_ended = [this](offload::Connection& connection) {
      serving_.doorbells().close(connection.doorbell);
    };
    thread_ = std::thread([this] {
      while (!stopping_) {
        clients_->turn();
        serving_.scheduler().turn();
        std::this_thread::yield();
      }
    });
  }
  ~ImpatientNode() {
    stopping_ = true;
    thread_.join();
    clients_.reset();
    while (!serving_.scheduler().idle()) serving_.scheduler().turn();
    serving_.scheduler().turn();
  }
  ImpatientNode(const ImpatientNode&) = delete;
  ImpatientNode& operator=(const ImpatientNode&) = delete;

  [[nodiscard]] const fabric::FabricAddress& address() const { return listens_at_; }
  [[nodiscard]] const offload::FabricCounts& counts() const { return clients_->counts(); }

 private:
  offload::SchedulerFixture serving_;
  fabric::FabricAddress listens_at_;
  std::unique_ptr<offload::FabricClients> clients_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

/// Whether the node answers.
bool answers(ThreadRings& rings) {
  wire::CallMessage request;
  request.offload = wire::OffloadId::noop;
  if (!rings.send(request, 7)) return false;
  rings.ring();
  Incoming response;
  return rings.wait() && rings.receive(response) && response.header.tag == 7;
}

void expect_keepalive(const FabricConnectionOptions& options) {
  ImpatientNode node(10'000'000'000);  // a busy machine may delay the keepalive thread
  auto connection = FabricConnection::open(node.address(), options);
  ASSERT_TRUE(connection) << message(connection.error());
  auto rings = ThreadRings::open(*connection);
  ASSERT_TRUE(rings);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(answers(**rings));
    (*rings)->enter_idle();
  }
  const std::uint64_t before = node.counts().answered;
  while (node.counts().answered < before + 3) std::this_thread::yield();
  EXPECT_EQ(node.counts().lost, 0u);
  EXPECT_TRUE(answers(**rings));
  EXPECT_EQ((*connection)->resumed(), 0u);
  (*connection)->hang_up();
}

TEST(KeepaliveConnectionConcurrency, AnswersForIdleClients) { expect_keepalive({}); }

// Its clock stands still between two requests, so it delays its last ACK for the next request,
// which does not come.
TEST(KeepaliveConnectionConcurrency, GivesWhatWasHeldBack) {
  FabricConnectionOptions options;
  options.now_ns = [] { return std::uint64_t{1}; };
  expect_keepalive(options);
}

// The same without a keepalive thread, to show that the tests above can fail.
TEST(KeepaliveConnectionConcurrency, AConnectionWithoutKeepaliveIsGivenUp) {
  ImpatientNode node(1'000'000);
  auto regions = fabric::RegionTable::create();
  auto way = fabric::open_for_connecting(node.address(), std::move(*regions));
  ASSERT_TRUE(way);
  auto connection = FabricConnection::open(std::move(*way));
  ASSERT_TRUE(connection) << message(connection.error());
  auto rings = ThreadRings::open(*connection);
  ASSERT_TRUE(rings);
  ASSERT_TRUE(answers(**rings));
  (*rings)->enter_idle();
  while (node.counts().lost == 0) std::this_thread::yield();
  (*connection)->hang_up();
}

}  // namespace
}  // namespace espalier::client
