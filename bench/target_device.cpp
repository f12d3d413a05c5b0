// SPDX-License-Identifier: Apache-2.0
// Espalier's map, through a device before its node. Node and device run in this process, each with
// a worker on a core of its own if there are enough.
#include <unistd.h>

#include <memory>
#include <string>

#include "bench/map_session.hpp"
#include "bench/own_device.hpp"
#include "bench/own_node.hpp"

namespace espalier::bench {
namespace {

class DeviceTarget : public Target {
 public:
  explicit DeviceTarget(const TargetOptions& options)
      : options_(options),
        host_(start_host(options)),
        device_(start_own_device(*host_, {.cache_bytes = options.cache_bytes,
                                          .balance = options.balance,
                                          .slowness = options.slowness,
                                          .transport = options.transport})),
        store_(value_or_throw(Store::connect(address_of(*device_, options.transport)),
                              "cannot connect to the device")),
        name_(fmt::format("bench-{}", ::getpid())),
        map_(value_or_throw(store_.create_map(name_, map_options_of(options)),
                            "cannot create a map")) {}

  std::unique_ptr<TargetSession> open_session() override {
    return open_session_with(options_.in_flight);
  }
  std::unique_ptr<TargetSession> open_session_with(std::uint32_t in_flight) override {
    return open_map_session(map_, in_flight);
  }
  Contents contents() override { return contents_of(map_); }

  [[nodiscard]] std::string settings() const override {
    return fmt::format(
        "{} in flight on each thread, versions {}, device at {} with {} bytes of cache, balance "
        "{}, slowness {}",
        options_.in_flight, options_.versions ? "on" : "off",
        address_of(*device_, options_.transport), options_.cache_bytes, options_.balance,
        options_.slowness);
  }
  [[nodiscard]] std::optional<PathTraffic> traffic() const override {
    return traffic_of(*device_, *host_, store_, name_);
  }
  [[nodiscard]] std::string pages() const override { return host_->page_message(); }

 private:
  static std::unique_ptr<node::Node> start_host(const TargetOptions& options) {
    node::Config config = own_node_config(options.node_cores);
    prepare_host(config);
    return start_own_node(config);
  }

  TargetOptions options_;
  std::unique_ptr<node::Node> host_;
  std::unique_ptr<device::Device> device_;
  Store store_;
  std::string name_;
  Map map_;
};

}  // namespace

std::unique_ptr<Target> make_device_target(const TargetOptions& options) {
  return std::make_unique<DeviceTarget>(options);
}

}  // namespace espalier::bench
