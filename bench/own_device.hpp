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
  bool pins_roots = true;  ///< else nothing is remembered
  std::uint32_t balance = 0;
  double slowness = 1;  ///< see node::WorkerCore
  bool spins = false;   ///< its worker does not go to sleep between two requests
  NodeTransport transport = NodeTransport::unix_socket;  ///< how clients come to it
};

/// Options of a node that is a device's host, in addition to its others.
void prepare_host(node::Config& config);

/// A device of one worker before this host, on other cores than the host's where there are enough.
/// Requires: prepare_host(). Errors: throws std::runtime_error with the reason.
[[nodiscard]] std::unique_ptr<device::Device> start_own_device(const node::Node& host,
                                                               const OwnDeviceOptions& options);

/// Where clients reach it.
[[nodiscard]] std::string address_of(device::Device& device, NodeTransport transport);

/// What it has read of its host and remembered, and what its host's processor has done of requests
/// for keys, since they began. Counts of all that is answered are in it. `at_device` is a store of
/// the device, in which a map has this name. Cost: some milliseconds.
/// Errors: throws std::runtime_error if the device does not answer.
[[nodiscard]] PathTraffic traffic_of(device::Device& device, const node::Node& host,
                                     const Store& at_device, const std::string& map);

}  // namespace espalier::bench
