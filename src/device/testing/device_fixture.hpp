// SPDX-License-Identifier: Apache-2.0
// A host and a device in front of it, both in this process, over shared memory as a fabric.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "base/temporary_folder.hpp"
#include "device/device.hpp"
#include "espalier/map.hpp"
#include "node/metrics.hpp"

namespace espalier::device {

class DeviceFixture : public ::testing::Test {
 protected:
  DeviceFixture() {
    host_config_ = config_at("host");
    host_config_.node.fabric = "shm:" + (folder_ / "fabric").string();
    host_config_.node.one_sided = true;
    device_config_ = config_at("device");
    device_config_.node.place = node::Place::device;
    device_config_.node.host = host_config_.node.fabric;
  }

  void start_host() {
    host_.reset();
    auto host = node::Node::start(host_config_);
    ASSERT_TRUE(host) << message(host.error());
    host_ = std::move(*host);
  }
  void start_device() {
    auto host = host_options(device_config_);
    ASSERT_TRUE(host);
    host->timeout_ns = host_timeout_ns_;
    host->silence_ns = host_silence_ns_;
    auto device = Device::start(device_config_, {.host = *host, .node = {}, .begun_anew = [] {}});
    ASSERT_TRUE(device) << message(device.error());
    device_ = std::move(*device);
  }
  void start() {
    start_host();
    start_device();
  }
  [[nodiscard]] Store connect_to_host() const { return connect(host_config_); }
  [[nodiscard]] Store connect_to_device() const { return connect(device_config_); }
  /// Number of requests of this kind to the host.
  [[nodiscard]] std::uint64_t host_was_asked(wire::OffloadId id) const {
    for (const node::OffloadNumbers& offload : node::numbers_of(*host_).offloads) {
      if (offload.id == id) return offload.requests;
    }
    return 0;
  }

  base::TemporaryFolder folder_;
  node::Config host_config_;
  node::Config device_config_;
  // Machines that test may be so busy that nothing moves for seconds.
  std::uint64_t host_timeout_ns_ = 10'000'000'000;
  std::uint64_t host_silence_ns_ = 60'000'000'000;
  std::unique_ptr<node::Node> host_;
  std::unique_ptr<Device> device_;

 private:
  [[nodiscard]] node::Config config_at(const std::string& name) const {
    node::Config config;
    config.node.socket = (folder_ / name).string();
    config.node.sweep_asleep_ms = 10;
    config.memory.limit = std::uint64_t{256} << 20;
    config.memory.huge_pages = false;
    return config;
  }
  [[nodiscard]] static Store connect(const node::Config& config) {
    auto store = Store::connect("unix:" + config.node.socket);
    EXPECT_TRUE(store) << message(store.error());
    return std::move(*store);
  }
};

}  // namespace espalier::device
