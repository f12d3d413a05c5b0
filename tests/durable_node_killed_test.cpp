// SPDX-License-Identifier: Apache-2.0
// A node with a data folder is killed at random moments and restarted. What was acknowledged is
// there, what any client has read is there, and each write in flight is there or not. Where answers
// precede durability, that holds for all that was reported as durable. Clients are processes, which
// keep the expected state.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/temporary_folder.hpp"
#include "node/data_check.hpp"
#include "node/data_reader.hpp"
#include "tests/support/child.hpp"
#include "tests/support/durable_client.hpp"
#include "tests/support/forked_node.hpp"
#include "tests/support/node_config.hpp"

namespace espalier::test {

namespace {

const std::string kChecked = "checked";
const std::string kNow = "now";

/// Lives until it is stopped. For each message, an address and a number, it checks what it knows,
/// reports that, and works until the node is gone; after so many answers it sends a report.
int write_and_remember(Line& line, std::uint64_t number, std::uint64_t seed, bool async) {
  DurableClient client(number, seed, async);
  std::string order;
  while (line.receive(order)) {
    const std::size_t space = order.find(' ');
    std::uint64_t until_now = std::stoull(order.substr(0, space));
    std::string wrong = client.check(order.substr(space + 1));
    line.send(wrong.empty() ? kChecked : wrong);
    if (!wrong.empty()) return 1;
    wrong = client.work([&] {
      if (until_now != 0 && --until_now == 0) line.send(kNow);
    });
    if (!wrong.empty()) {
      line.send(wrong);
      return 1;
    }
  }
  return 0;
}

class KilledDurableNodeConcurrency : public testing::TestWithParam<Durability> {
 protected:
  static constexpr std::uint64_t kClients = 3;

  KilledDurableNodeConcurrency() {
    config_ = node_config(folder_, 2);
    config_.data.dir = (folder_ / "data").string();
    config_.data.durability = GetParam();
    config_.data.async_ms = 20;
    options_.segment_bytes = std::uint64_t{1} << 20;
    config_.data.checkpoint_log_bytes = std::uint64_t{1} << 20;  // checkpoints all the time
    for (std::uint64_t i = 0; i < kClients; ++i) {
      clients_.emplace_back([i, seed = random_(), async = GetParam() == Durability::async](
                                Line& line) { return write_and_remember(line, i, seed, async); });
    }
  }
  /// Starts the node, has clients work, and kills it once one of them has had so many answers.
  void run_and_kill() {
    auto node = std::make_unique<ForkedNode>(config_, options_);
    const std::uint64_t chosen = random_.below(kClients);
    const std::uint64_t answers = 1 + random_.below(400);
    for (std::uint64_t i = 0; i < kClients; ++i) {
      const std::string until = std::to_string(i == chosen ? answers : 0);
      ASSERT_TRUE(clients_[i].line().send(until + " unix:" + config_.node.socket));
    }
    std::string said;
    for (Child& client : clients_) {
      ASSERT_TRUE(client.line().receive(said));
      ASSERT_EQ(said, kChecked);
    }
    ASSERT_TRUE(clients_[chosen].line().receive(said));
    ASSERT_EQ(said, kNow);
    node.reset();  // kills it
    check_folder();
  }
  /// A killed node leaves a consistent store.
  void check_folder() {
    const auto data = node::DataReader::open(config_.data.dir);
    ASSERT_TRUE(data) << data.error().what;
    const auto report = node::check_data(**data, {.memory_bytes_max = config_.memory.limit});
    ASSERT_TRUE(report) << report.error().what;
    EXPECT_TRUE(report->good()) << (report->mistake ? report->mistake->what : "");
    EXPECT_FALSE(report->objects.empty());
    for (const node::CheckedObject& object : report->objects) {
      EXPECT_EQ(object.faults, std::vector<std::string>{}) << object.kind << " " << object.name;
    }
  }

  base::Random random_{base::seed_from_environment(41)};
  base::TemporaryFolder folder_;
  node::Config config_;
  node::NodeOptions options_;
  std::vector<Child> clients_;  // forked while this process has one thread
};

INSTANTIATE_TEST_SUITE_P(Promises, KilledDurableNodeConcurrency,
                         testing::Values(Durability::sync, Durability::async), [](const auto& of) {
                           return of.param == Durability::sync ? "sync" : "async";
                         });

TEST_P(KilledDurableNodeConcurrency, WhatWasAcknowledgedOrSeenIsThereAgain) {
  for (int round = 0; round < 8; ++round) {
    SCOPED_TRACE(round);
    ASSERT_NO_FATAL_FAILURE(run_and_kill());
  }
  // A last life, which ends regularly.
  ForkedNode node(config_, options_);
  std::string said;
  for (Child& client : clients_) {
    ASSERT_TRUE(client.line().send("0 unix:" + config_.node.socket));
    ASSERT_TRUE(client.line().receive(said));
    EXPECT_EQ(said, kChecked);
  }
  for (Child& client : clients_) {
    client.kill();
    client.wait();
  }
  EXPECT_EQ(node.stop(), "");
}

}  // namespace
}  // namespace espalier::test
