// SPDX-License-Identifier: Apache-2.0
#include "bench/own_device.hpp"

#include <chrono>
#include <initializer_list>
#include <utility>

#include "bench/map_session.hpp"
#include "bench/own_node.hpp"
#include "engine/registry.hpp"
#include "kinds/map/offload/map_offloads.hpp"
#include "node/metrics.hpp"

namespace espalier::bench {
namespace {

constexpr auto kCountsTold = std::chrono::milliseconds(2);  // links update them each millisecond

std::uint64_t requests_for_keys(const node::NodeNumbers& numbers) {
  std::uint64_t requests = 0;
  for (const auto offloads : {offload::point_offloads(), offload::range_offloads(),
                              offload::modify_offloads(), offload::batch_offloads()}) {
    for (const offload::Offload& offload : offloads) {
      // With these the device probes its host, and cancels requests.
      if (offload.id == wire::OffloadId::noop || offload.id == wire::OffloadId::cancel) continue;
      for (const node::OffloadNumbers& counted : numbers.offloads) {
        if (counted.id == offload.id) requests += counted.requests;
      }
    }
  }
  return requests;
}

}  // namespace

void prepare_host(node::Config& config) {
  config.node.one_sided = true;
  prepare(config, NodeTransport::shm);
}

std::unique_ptr<device::Device> start_own_device(const node::Node& host,
                                                 const OwnDeviceOptions& options) {
  node::Config config = options.spins ? spinning_node_config() : own_node_config();
  config.node.place = node::Place::device;
  config.node.host = address_of(host, NodeTransport::shm);
  config.node.cache = options.cache_bytes;
  config.node.balance = options.balance;
  prepare(config, options.transport);
  device::DeviceOptions device;
  device.host = value_or_throw(device::host_options(config), "no such host");
  device.host.pins_roots = options.pins_roots;
  device.node.core = {.taken = host.config().node.cores, .slowness = options.slowness};
  return value_or_throw(device::Device::start(config, device), "cannot start a device");
}

std::string address_of(device::Device& device, NodeTransport transport) {
  return device.with_node([&](const node::Node* node) { return address_of(*node, transport); });
}

// The newest counts appear in a turn of the worker that begins a millisecond later. Two relayed
// requests in sequence make it begin.
PathTraffic traffic_of(device::Device& device, const node::Node& host, const Store& at_device,
                       const std::string& map) {
  const auto until = std::chrono::steady_clock::now() + kCountsTold;
  for (int after = 0; after < 2;) {
    if (std::chrono::steady_clock::now() >= until) ++after;
    static_cast<void>(value_or_throw(at_device.open_map(map), "the device does not answer"));
  }
  const node::NodeNumbers read =
      device.with_node([](const node::Node* node) { return node::numbers_of(*node); });
  PathTraffic traffic;
  traffic.round_trips = read.value("device_round_trips");
  traffic.bytes = read.value("device_read_bytes");
  traffic.of_device = {.own_bytes = read.value("device_remembered_bytes"),
                       .descents = read.value("device_descents"),
                       .hits = read.value("device_hits"),
                       .balanced = read.value("device_balanced"),
                       .forwarded = requests_for_keys(node::numbers_of(host))};
  return traffic;
}

}  // namespace espalier::bench
