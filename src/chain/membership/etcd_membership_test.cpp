// SPDX-License-Identifier: Apache-2.0
// A chain in an etcd of the test's own, in a folder and on ports of its own.
#include "chain/membership/etcd_membership.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/temporary_folder.hpp"
#include "chain/membership/testing/own_etcd.hpp"

namespace espalier::chain {
namespace {

View etcd_view(std::uint64_t epoch) {
  return {.chain = 12,
          .epoch = epoch,
          .fence_ms = 400,
          .members = {{1, "a", "roce://10.0.0.1/a"}, {2, "b", "roce://10.0.0.2/b"}}};
}

TEST(EtcdMembership, AViewGoesOnFromTheOneBefore) {
  const base::TemporaryFolder folder;
  const OwnEtcd etcd(folder);
  ASSERT_TRUE(etcd.answers()) << "Is etcd installed? scripts/install-packages.sh --tests does it.";
  EtcdMembership membership({{etcd.endpoint()}, "espalier/kv"});
  EtcdMembership other({{etcd.endpoint()}, "espalier/kv"});
  EXPECT_EQ(membership.read().value(), std::nullopt);
  EXPECT_EQ(membership.replace(etcd_view(2)), false);  // there is none yet
  EXPECT_EQ(membership.replace(etcd_view(1)), true);
  EXPECT_EQ(other.replace(etcd_view(1)), false);
  EXPECT_EQ(other.replace(etcd_view(2)), true);
  EXPECT_EQ(membership.replace(etcd_view(2)), false);
  EXPECT_EQ(membership.replace(etcd_view(4)), false);
  EXPECT_EQ(membership.read().value(), etcd_view(2));
}

TEST(EtcdMembership, AnEtcdThatWasStoppedIsGivenUpAndTheNextOneIsAsked) {
  const base::TemporaryFolder folder;
  const OwnEtcd etcd(folder);
  ASSERT_TRUE(etcd.answers());
  const std::string nobody = "127.0.0.1:" + std::to_string(free_ports(1)[0]);
  EtcdMembership both({{nobody, etcd.endpoint()}, "chain"});
  EXPECT_EQ(both.replace(etcd_view(1)), true);
  EXPECT_EQ(both.read().value(), etcd_view(1));
  ASSERT_TRUE(etcd.stop());
  const auto stopped = both.read();
  ASSERT_FALSE(stopped);
  EXPECT_NE(stopped.error().find("etcd at "), std::string::npos);
  ::kill(etcd.process(), SIGCONT);
  for (const base::Stopwatch watch; watch.elapsed_ns() < kEtcdSoonNs;) {
    if (both.read()) break;
  }
  EXPECT_EQ(both.read().value(), etcd_view(1));
}

TEST(EtcdMembershipConcurrency, OfThoseWhoProposeOneWins) {
  const base::TemporaryFolder folder;
  const OwnEtcd etcd(folder);
  ASSERT_TRUE(etcd.answers());
  constexpr std::uint64_t kEpochs = 10;
  ASSERT_EQ(EtcdMembership({{etcd.endpoint()}, "chain"}).replace(etcd_view(1)), true);
  std::vector<std::vector<bool>> won(3, std::vector<bool>(kEpochs + 1));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < won.size(); ++i) {
    threads.emplace_back([&, i] {
      EtcdMembership membership({{etcd.endpoint()}, "chain"});
      for (std::uint64_t epoch = 2; epoch <= kEpochs; ++epoch) {
        const auto taken = membership.replace(etcd_view(epoch));
        won[i][epoch] = taken && *taken;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint64_t epoch = 2; epoch <= kEpochs; ++epoch) {
    const auto winners =
        std::ranges::count_if(won, [&](const auto& of_thread) { return of_thread[epoch]; });
    EXPECT_LE(winners, 1) << epoch;
  }
}

}  // namespace
}  // namespace espalier::chain
