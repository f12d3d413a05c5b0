// SPDX-License-Identifier: Apache-2.0
// A device: the engine of a memory node in front of another node, its host, whose maps it serves
// and which it reaches through the fabric only (docs/design/device.md). It listens like a node;
// clients need not know that it is a device.
//
// If the host is gone the device stays up, reports this to clients, and resumes when the host
// returns. If another node replaces the host, ids of maps are invalid: the engine ends and a new
// one starts, with another node id, so that its clients reconnect and reopen their maps as after a
// node's restart.
//
// Thread: start and end one at a time; the rest from any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "channel/device/host_opening.hpp"
#include "device/device_offloads.hpp"
#include "node/node.hpp"

namespace espalier::device {

struct DeviceOptions {
  HostOptions host;
  node::NodeOptions node;
  /// Called when the engine has restarted because the host was replaced; on a thread of its own.
  std::function<void()> begun_anew = [] {};
};

/// The host's address in this configuration. Requires: a device's configuration.
/// Errors: those of fabric::parse.
Result<HostOptions> host_options(const node::Config& config);

/// Asks the node at this address for its id, and whether its memory may be read.
/// Errors: those of open_host.
Result<std::uint64_t> find_host(const HostOptions& options);

class Device {
 public:
  /// Starts to serve the maps of the host. Errors: those of node::Node::start and open_host.
  static Result<std::unique_ptr<Device>> start(const node::Config& config,
                                               const DeviceOptions& options);
  /// Stops, as a node does.
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// Calls `use` with its engine, which stays alive meanwhile; with null while it restarts.
  template <class Use>
  auto with_node(const Use& use) {
    const std::lock_guard lock(mutex_);
    return use(node_.get());
  }
  /// Number of times that its host was replaced.
  [[nodiscard]] std::uint64_t replaced() const { return replaced_.load(); }

 private:
  Device(const node::Config& config, const DeviceOptions& options);
  Result<std::unique_ptr<node::Node>> begin();
  Result<void> open_links(offload::Services& services, std::uint32_t schedulers,
                          const HostOptions& host);
  void watch();
  bool await_replacement();
  void begin_anew();

  node::Config config_;
  DeviceOptions options_;
  DeviceOffloads offloads_;
  std::mutex mutex_;  // guards node_
  std::unique_ptr<node::Node> node_;

  std::mutex signal_mutex_;  // guards the next two; held only briefly
  bool is_replaced_ = false;
  bool stopping_ = false;
  std::condition_variable signal_;
  std::atomic<std::uint64_t> replaced_{0};
  std::thread watcher_;  // restarts the engine
};

}  // namespace espalier::device
