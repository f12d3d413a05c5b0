// SPDX-License-Identifier: Apache-2.0
#include "device/device.hpp"

#include <chrono>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "channel/device/device_link.hpp"
#include "channel/device/host_posts.hpp"
#include "engine/services.hpp"
#include "kinds/at_device.hpp"

namespace espalier::device {
namespace {

/// Of its own store, in which no map lies.
constexpr std::uint64_t kMemoryBytes = std::uint64_t{64} << 20;

/// Those of all schedulers, which outlive them.
struct DeviceLinks final : offload::NodePart {
  std::vector<std::unique_ptr<DeviceLink>> all;
};

}  // namespace

Result<HostOptions> host_options(const node::Config& config) {
  auto address = fabric::parse(config.node.host);
  if (!address) return std::unexpected(address.error());
  HostOptions options;
  options.address = std::move(*address);
  options.secret_file = config.node.secret_file;
  options.cache_bytes = config.node.cache;
  options.balance = config.node.balance;
  return options;
}

Result<std::uint64_t> find_host(const HostOptions& options) {
  const auto opened = open_host(options);
  if (!opened) return std::unexpected(opened.error());
  return opened->connection->node_id();
}

Device::Device(const node::Config& config, const DeviceOptions& options)
    : config_(config), options_(options), offloads_(config.node.host, options.node.own_kinds) {
  config_.maps.clear();
  config_.memory.limit = kMemoryBytes;
  config_.node.one_sided = false;
}

Result<std::unique_ptr<Device>> Device::start(const node::Config& config,
                                              const DeviceOptions& options) {
  std::unique_ptr<Device> device(new Device(config, options));
  auto begun = device->begin();
  if (!begun) return std::unexpected(begun.error());
  device->node_ = std::move(*begun);
  try {
    device->watcher_ = std::thread([&device = *device] { device.watch(); });
  } catch (const std::system_error& error) {
    return fail(Code::system, static_cast<std::uint32_t>(error.code().value()));
  }
  return device;
}

Device::~Device() {
  if (watcher_.joinable()) {
    {
      const std::lock_guard lock(signal_mutex_);
      stopping_ = true;
    }
    signal_.notify_all();
    watcher_.join();
  }
  node_.reset();  // its workers report until they end
}

// All workers have the same host, the one that was found first.
Result<std::unique_ptr<node::Node>> Device::begin() {
  HostOptions host = options_.host;
  const auto id = find_host(host);
  if (!id) return std::unexpected(id.error());
  host.node_id = *id;
  node::NodeOptions options = options_.node;
  options.device_offloads = &offloads_.table();
  options.make_parts = [this, host](offload::Services& services, std::uint32_t schedulers) {
    return open_links(services, schedulers, host);
  };
  auto node = node::Node::start(config_, options);
  if (!node) return std::unexpected(node.error());
  // The next one listens where this one does.
  config_.node.fabric.clear();
  for (const std::string& address : (*node)->fabric_addresses()) {
    config_.node.fabric += (config_.node.fabric.empty() ? "" : " ") + address;
  }
  return node;
}

Result<void> Device::open_links(offload::Services& services, std::uint32_t schedulers,
                                const HostOptions& host) {
  const auto on_replaced = [this] {
    {
      const std::lock_guard lock(signal_mutex_);
      is_replaced_ = true;
    }
    signal_.notify_all();
  };
  auto& links = services.parts.make<DeviceLinks>();
  auto& known = services.parts.make<NodeHost>();
  for (std::uint32_t i = 0; i < schedulers; ++i) {
    auto link = DeviceLink::open(host, make_host_parts(services.parts, host), on_replaced);
    if (!link) return std::unexpected(link.error());
    known.links.push_back(link->get());
    links.all.push_back(std::move(*link));
  }
  return {};
}

void Device::watch() {
  while (await_replacement()) begin_anew();
}

// Returns false when it stops.
bool Device::await_replacement() {
  std::unique_lock lock(signal_mutex_);
  signal_.wait(lock, [this] { return stopping_ || is_replaced_; });
  is_replaced_ = false;
  return !stopping_;
}

void Device::begin_anew() {
  std::unique_ptr<node::Node> ended;
  {
    const std::lock_guard lock(mutex_);
    ended = std::move(node_);
  }
  const std::string fabric = config_.node.fabric;  // with the ports that it had
  config_ = ended->config();                       // with what was changed while it ran
  config_.node.fabric = fabric;
  ended.reset();
  replaced_.fetch_add(1);
  {
    const std::lock_guard lock(signal_mutex_);
    is_replaced_ = false;  // several workers may have found it
  }
  for (;;) {
    if (auto begun = begin()) {
      {
        const std::lock_guard lock(mutex_);
        node_ = std::move(*begun);
      }
      return options_.begun_anew();
    }
    std::unique_lock waiting(signal_mutex_);
    signal_.wait_for(waiting, std::chrono::nanoseconds(options_.host.pause_ns),
                     [this] { return stopping_; });
    if (stopping_) return;
  }
}

}  // namespace espalier::device
