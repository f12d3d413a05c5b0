// SPDX-License-Identifier: Apache-2.0
// The keeper, and what it is for: a node that asks who is silent, over real sockets.
#include "client/connection_keeper.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "client/fabric_connection.hpp"
#include "client/lane.hpp"
#include "fabric/address.hpp"
#include "offload/fabric_clients.hpp"
#include "offload/testing/engine_fixture.hpp"

namespace espalier::client {
namespace {

struct Counted final : Kept {
  void keep() override { ++times; }
  std::atomic<int> times{0};
};

void await(const std::atomic<int>& times, int more) {
  const int until = times + more;
  while (times < until) std::this_thread::yield();
}

TEST(ConnectionKeeperConcurrency, WorksForEachUntilItIsRemoved) {
  Counted first;
  Counted second;
  const auto keeper = ConnectionKeeper::of_process();
  EXPECT_EQ(ConnectionKeeper::of_process(), keeper);
  keeper->add(first);
  keeper->add(second);
  await(first.times, 2);
  await(second.times, 1);
  keeper->remove(first);
  const int then = first.times;
  await(second.times, 2);
  EXPECT_EQ(first.times, then);
  keeper->remove(second);
}

TEST(ConnectionKeeperConcurrency, ThereIsANewOneAfterTheLastHasGone) {
  std::weak_ptr<ConnectionKeeper> gone = ConnectionKeeper::of_process();
  EXPECT_TRUE(gone.expired());
  Counted counted;
  const auto keeper = ConnectionKeeper::of_process();
  keeper->add(counted);
  await(counted.times, 1);
  keeper->remove(counted);
}

// Whatever it was about to do when the process forked.
TEST(ConnectionKeeperConcurrency, ACopyInAForkedProcessEndsInPeace) {
  Counted counted;
  auto keeper = ConnectionKeeper::of_process();
  keeper->add(counted);
  await(counted.times, 1);
  const pid_t child = fork();
  if (child == 0) {
    keeper->remove(counted);
    keeper.reset();
    _exit(7);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  keeper->remove(counted);
}

/// A node's end, turned by a thread of its own, that asks after 10 ms of silence.
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
                                                        engine_.services(), engine_.engine(),
                                                        engine_.doorbells(), std::move(options));
    engine_.engine().on_ended = [this](offload::Connection& connection) {
      engine_.doorbells().close(connection.doorbell);
    };
    thread_ = std::thread([this] {
      while (!stopping_) {
        clients_->turn();
        engine_.engine().turn();
        std::this_thread::yield();
      }
    });
  }
  ~ImpatientNode() {
    stopping_ = true;
    thread_.join();
    clients_.reset();
    while (!engine_.engine().idle()) engine_.engine().turn();
    engine_.engine().turn();
  }
  ImpatientNode(const ImpatientNode&) = delete;
  ImpatientNode& operator=(const ImpatientNode&) = delete;

  [[nodiscard]] const fabric::FabricAddress& address() const { return listens_at_; }
  [[nodiscard]] const offload::FabricCounts& counts() const { return clients_->counts(); }

 private:
  offload::EngineFixture engine_;
  fabric::FabricAddress listens_at_;
  std::unique_ptr<offload::FabricClients> clients_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

/// Whether the node answers.
bool answers(Lane& lane) {
  Outgoing request;
  request.offload = wire::OffloadId::noop;
  if (!lane.send(request, 7)) return false;
  lane.ring();
  Incoming response;
  return lane.wait() && lane.receive(response) && response.header.tag == 7;
}

void expect_kept(const FabricConnectionOptions& options) {
  ImpatientNode node(10'000'000'000);  // a busy machine may keep the keeper waiting
  auto connection = FabricConnection::open(node.address(), options);
  ASSERT_TRUE(connection) << message(connection.error());
  auto lane = Lane::open(*connection);
  ASSERT_TRUE(lane);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(answers(**lane));
    (*lane)->settle();
  }
  const std::uint64_t before = node.counts().answered;
  while (node.counts().answered < before + 3) std::this_thread::yield();
  EXPECT_EQ(node.counts().lost, 0u);
  EXPECT_TRUE(answers(**lane));
  EXPECT_EQ((*connection)->resumed(), 0u);
  (*connection)->hang_up();
}

TEST(KeptConnectionConcurrency, AnswersForIdleClients) { expect_kept({}); }

// As no time passes for it between two requests, it leaves its last acknowledgement to the next
// one, which does not come.
TEST(KeptConnectionConcurrency, GivesWhatWasHeldBack) {
  FabricConnectionOptions options;
  options.now_ns = [] { return std::uint64_t{1}; };
  expect_kept(options);
}

// The same without a keeper, to see that the tests above can fail.
TEST(KeptConnectionConcurrency, WhoHasNoKeeperIsGivenUp) {
  ImpatientNode node(1'000'000);
  auto regions = fabric::RegionTable::create();
  auto way = fabric::open_for_connecting(node.address(), std::move(*regions));
  ASSERT_TRUE(way);
  auto connection = FabricConnection::open(std::move(*way));
  ASSERT_TRUE(connection) << message(connection.error());
  auto lane = Lane::open(*connection);
  ASSERT_TRUE(lane);
  ASSERT_TRUE(answers(**lane));
  (*lane)->settle();
  while (node.counts().lost == 0) std::this_thread::yield();
  (*connection)->hang_up();
}

}  // namespace
}  // namespace espalier::client
