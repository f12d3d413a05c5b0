// SPDX-License-Identifier: Apache-2.0
// Devices in processes of their own that are stopped and killed, while their host lives on.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "espalier/map.hpp"
#include "node/metrics.hpp"
#include "node/node.hpp"
#include "tests/support/device_process.hpp"
#include "tests/support/node_config.hpp"

namespace espalier::test {
namespace {

constexpr std::uint64_t kSilenceNs = 500'000'000;
class DeviceProcesses : public ::testing::Test {
 protected:
  void SetUp() override {
    node::NodeOptions options;
    options.silence_ns = kSilenceNs;
    auto host = node::Node::start(host_config_, options);
    ASSERT_TRUE(host) << message(host.error());
    host_ = std::move(*host);
    first_.start();
    Store store = connect(host_config_);
    ASSERT_TRUE(store.create_map("m"));
    write(store, 0);
  }
  static Store connect(const node::Config& config) {
    auto store = Store::connect("unix:" + config.node.socket);
    if (!store) throw std::runtime_error(message(store.error()));
    return std::move(*store);
  }
  static void write(Store& store, std::uint64_t number) {
    Map map = *store.open_map("m");
    const auto put = map.put("key", std::to_string(number));
    EXPECT_TRUE(put) << message(put.error());
  }
  [[nodiscard]] node::NodeNumbers numbers() const { return node::numbers_of(*host_); }
  /// The host has missed the device.
  void wait_until_leases_end() const {
    while (numbers().value("leases") != 0) std::this_thread::yield();
  }
  [[nodiscard]] std::uint64_t snapshots() const {
    std::uint64_t sum = 0;
    const auto now = node::numbers_and_samples_of(*host_);
    for (const wire::SampledObject& map : now.sampled.objects) {
      sum += wire::sample_value(map, "snapshots");
    }
    return sum;
  }

  base::TemporaryFolder folder_;
  node::Config host_config_ = [this] {
    node::Config config = node_config(folder_);
    config.node.fabric = "shm:" + (folder_ / "fabric").string();
    config.node.one_sided = true;
    config.clients.resume_seconds = 1;
    return config;
  }();
  node::Config device_config_ = [this] {
    node::Config config = node_config(folder_);
    config.node.socket = (folder_ / "device").string();
    config.node.place = node::Place::device;
    config.node.host = host_config_.node.fabric;
    return config;
  }();
  DeviceProcess first_{device_config_};
  DeviceProcess second_{device_config_};
  std::unique_ptr<node::Node> host_;
};

// Its leases end while it is stopped, and its host continues to write. Whatever it was about to
// answer, and whatever it has cached, no client gets a value that was replaced before the request.
TEST_F(DeviceProcesses, AStoppedDeviceAnswersNothingOldWhenItGoesOn) {
  constexpr int kStops = 3;
  std::atomic<std::uint64_t> acknowledged{0};
  std::atomic<std::uint64_t> answers{0};
  std::atomic<bool> over{false};
  std::thread reader([&] {
    Store store = connect(device_config_);
    const Map map = *store.open_map("m");
    while (!over.load()) {
      const std::uint64_t at_least = acknowledged.load();
      const auto got = map.get("key");
      if (!got) continue;  // the device may have lost its host's memory for a moment
      ASSERT_TRUE(*got);
      EXPECT_GE(std::stoull((*got)->value), at_least);
      ++answers;
    }
  });
  const auto wait_for_answers = [&] {
    for (const std::uint64_t before = answers.load(); answers.load() < before + 100;) {
      std::this_thread::yield();
    }
  };
  Store host = connect(host_config_);
  std::uint64_t number = 0;
  for (int stops = 0; stops < kStops; ++stops) {
    wait_for_answers();
    EXPECT_NE(numbers().value("leases"), 0u);
    first_.stop();
    do {
      write(host, ++number);
      acknowledged.store(number);
    } while (numbers().value("leases") != 0);
    first_.go_on();
    write(host, ++number);
    acknowledged.store(number);
    wait_for_answers();
  }
  over.store(true);
  reader.join();
}

TEST_F(DeviceProcesses, AKilledDeviceLeavesNothingAtItsHost) {
  {
    Store store = connect(device_config_);
    const Map map = *store.open_map("m");
    const auto snapshot = map.snapshot();
    ASSERT_TRUE(snapshot) << message(snapshot.error());
    ASSERT_TRUE(map.get("key"));
    EXPECT_EQ(snapshots(), 1u);
    EXPECT_NE(numbers().value("leases"), 0u);
    EXPECT_EQ(first_.kill(), -SIGKILL);
    EXPECT_FALSE(map.get("key"));
  }
  wait_until_leases_end();
  while (snapshots() != 0 || host_->connections() != 0) std::this_thread::yield();
  Store host = connect(host_config_);
  write(host, 7);
  second_.start();
  Store store = connect(device_config_);
  const auto got = store.open_map("m")->get("key");
  ASSERT_TRUE(got) << message(got.error());
  ASSERT_TRUE(*got);
  EXPECT_EQ((*got)->value, "7");
}

}  // namespace
}  // namespace espalier::test
