// SPDX-License-Identifier: Apache-2.0
// The device that a benchmark starts before a node of its own (docs/design/device.md), and its
// counters.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bench/node_transport.hpp"
#include "bench/target.hpp"
#include "device/device.hpp"
#include "espalier/map.hpp"
#include "node/node.hpp"

namespace espalier::bench {

struct OwnDeviceOptions {
  std::uint64_t cache_bytes = std::uint64_t{64} << 20;
  bool pins_roots = true;  ///< false: nothing is cached
  std::uint32_t balance = 0;
  double slowness = 1;  ///< see node::WorkerCore
  bool spins = false;   ///< its worker does not go to sleep between two requests
  NodeTransport transport = NodeTransport::unix_socket;  ///< between clients and it
};

/// Options of a node that is a device's host, in addition to its others.
void prepare_host(node::Config& config);

/// Starts a device with one worker before this host, on other cores than the host's if there are
/// enough. Requires: prepare_host(). Errors: throws std::runtime_error with the reason.
[[nodiscard]] std::unique_ptr<device::Device> start_own_device(const node::Node& host,
                                                               const OwnDeviceOptions& options);

/// Its address for clients.
[[nodiscard]] std::string address_of(device::Device& device, NodeTransport transport);

/// Its traffic to the host, its cache hits, and the requests for keys that the host's processor
/// executed, since they started. Includes all that is answered by now. `at_device` is a store of
/// the device that has a map of this name. Cost: some milliseconds. Errors: throws
/// std::runtime_error if the device does not answer.
[[nodiscard]] PathTraffic traffic_of(device::Device& device, const node::Node& host,
                                     const Store& at_device, const std::string& map);

}  // namespace espalier::bench
