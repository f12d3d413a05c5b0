// SPDX-License-Identifier: Apache-2.0
// Espalier's map on a memory node: through rings, in shared memory or over the fabric, or by
// one-sided walks. The node's workers are threads of this process, on the last cores, or those of a
// node that runs elsewhere.
#include <unistd.h>

#include "bench/map_session.hpp"
#include "bench/own_node.hpp"
#include "client/store_impl.hpp"

namespace espalier::bench {
namespace {

class NodeTarget : public Target {
 public:
  explicit NodeTarget(const TargetOptions& options)
      : options_(options),
        node_(options.node_address.empty() ? start_node(options) : nullptr),
        store_(value_or_throw(
            Store::connect(address(),
                           {.access = options.one_sided ? Access::one_sided : Access::rpc}),
            "cannot connect to the node")),
        map_(make_map()) {}

  ~NodeTarget() override {
    if (!node_) static_cast<void>(store_.drop_map(map_.name()));
  }

  std::unique_ptr<TargetSession> open_session() override {
    return open_session_with(options_.in_flight);
  }
  std::unique_ptr<TargetSession> open_session_with(std::uint32_t in_flight) override {
    return open_map_session(map_, in_flight);
  }
  Contents contents() override { return contents_of(map_); }

  [[nodiscard]] std::string settings() const override {
    return fmt::format("{} in flight on each thread, versions {}, node at {}", options_.in_flight,
                       options_.versions ? "on" : "off", address());
  }
  [[nodiscard]] std::optional<PathTraffic> traffic() const override {
    if (!options_.one_sided) return std::nullopt;
    const tree::WalkTraffic traffic = client::StoreImpl::of(store_).read_traffic();
    return PathTraffic{traffic.round_trips, traffic.bytes};
  }
  [[nodiscard]] std::string pages() const override { return node_ ? node_->page_message() : ""; }

 private:
  static std::unique_ptr<node::Node> start_node(const TargetOptions& options) {
    node::Config config = own_node_config(options.node_cores);
    config.node.one_sided = options.one_sided;
    config.data.dir = options.data_dir;
    config.data.durability = options.durability;
    prepare(config, options.transport);
    return start_own_node(config);
  }
  [[nodiscard]] std::string address() const {
    return node_ ? address_of(*node_, options_.transport) : options_.node_address;
  }
  Map make_map() {
    const std::string name = fmt::format("bench-{}", ::getpid());
    return value_or_throw(store_.create_map(name, map_options_of(options_)), "cannot create a map");
  }

  TargetOptions options_;
  std::unique_ptr<node::Node> node_;
  Store store_;
  Map map_;
};

}  // namespace

std::unique_ptr<Target> make_node_target(const TargetOptions& options) {
  return std::make_unique<NodeTarget>(options);
}

}  // namespace espalier::bench
