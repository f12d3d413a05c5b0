// SPDX-License-Identifier: Apache-2.0
// A device: the engine of a memory node before the maps of another one, its host, which it reaches
// through the fabric alone (docs/design/device.md). It listens as a node does, and its clients need
// not know what it is.
//
// When the host is gone the device stays, says so to whoever asks, and comes back with the host.
// When another node has come in the host's place, numbers of maps mean nothing any more: then the
// engine ends and another one begins, with another number as a node, so that its clients connect
// and open their maps anew as they would at a node that was started again.
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
  /// Called when the engine has begun anew, for the host is another node; by a thread of its own.
  std::function<void()> begun_anew = [] {};
};

/// Where the host of this configuration is. Requires: it is a device's.
/// Errors: those of fabric::parse.
Result<HostOptions> host_options(const node::Config& config);

/// Asks the node at this address for its number, and whether its memory may be read.
/// Errors: those of open_host.
Result<std::uint64_t> find_host(const HostOptions& options);

class Device {
 public:
  /// Begins to serve the maps of the host. Errors: those of node::Node::start and open_host.
  static Result<std::unique_ptr<Device>> start(const node::Config& config,
                                               const DeviceOptions& options);
  /// Stops, as a node does.
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// Calls `use` with its engine, which stays meanwhile; with null while another one begins.
  template <class Use>
  auto with_node(const Use& use) {
    const std::lock_guard lock(mutex_);
    return use(node_.get());
  }
  /// How often its host was replaced.
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

  std::mutex signal_mutex_;  // guards the next two; nothing is done under it
  bool is_replaced_ = false;
  bool stopping_ = false;
  std::condition_variable signal_;
  std::atomic<std::uint64_t> replaced_{0};
  std::thread watcher_;  // begins anew
};

}  // namespace espalier::device
