// SPDX-License-Identifier: Apache-2.0
// Clients of a host and of a device before it, at the same time: their histories form one.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/node_fixture.hpp"
#include "tests/support/recorder.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/version_replay.hpp"

namespace espalier::test {
namespace {

class DeviceConcurrency : public NodeFixture {
 protected:
  DeviceConcurrency() { reach_by("device"); }

  /// Threads write and read until each has done so much; even ones at the host, odd ones at the
  /// device. Fails unless all that they saw is one history.
  void expect_one_history(std::uint64_t seed, std::uint64_t each) {
    SCOPED_TRACE(seed_text(seed));
    auto host = Store::connect("unix:" + socket());
    ASSERT_TRUE(host) << message(host.error());
    Store device = connect();
    Map at_host = *host->create_map("m", {.node_bytes = 512, .log_bytes = 128});
    Map at_device = *device.open_map("m");
    Clock clock(Clock::Source::machine);
    std::vector<Recorder> recorders;
    for (std::uint32_t i = 0; i < 4; ++i) {
      recorders.emplace_back(i % 2 == 0 ? at_host : at_device, clock, i);
    }
    {
      std::vector<std::jthread> threads;
      for (std::uint32_t i = 0; i < recorders.size(); ++i) {
        threads.emplace_back([&, i] { work(recorders[i], Random(seed + i), each, i < 2); });
      }
    }
    History history;
    for (Recorder& recorder : recorders) {
      ASSERT_EQ(recorder.unexpected().value_or(""), "");
      for (Operation& done : recorder.log()) history.operations.push_back(std::move(done));
    }
    EXPECT_EQ(replay_versions(history).value_or(""), "");
  }

 private:
  static void work(Recorder& recorder, Random random, std::uint64_t each, bool writes) {
    for (std::uint64_t n = 0; n < each; ++n) {
      const std::string key = "k" + std::to_string(random.below(60));
      if (writes && random.one_in(2)) {
        const std::string value(random.one_in(10) ? random.below(2000) : random.below(30), 'v');
        random.one_in(3) ? recorder.erase(key) : recorder.put(key, std::to_string(n) + value);
      } else if (random.one_in(4)) {
        recorder.scan(key, "", {.limit = 5});
      } else if (random.one_in(4)) {
        recorder.floor(key);
      } else {
        recorder.get(key);
      }
    }
  }
};

TEST_F(DeviceConcurrency, HostAndDeviceAnswerOfOneHistory) {
  start();
  expect_one_history(seed_from_environment(21), scaled(3000));
}

TEST_F(DeviceConcurrency, SeveralWorkersOfADeviceToo) {
  config_.node.cores = kThreadSanitized ? 1 : 2;
  start();
  expect_one_history(seed_from_environment(22), scaled(2000));
}

}  // namespace
}  // namespace espalier::test
