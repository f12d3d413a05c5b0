// SPDX-License-Identifier: Apache-2.0
#include "bench/own_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "bench/map_session.hpp"
#include "engine/services.hpp"
#include "kinds/map/offload/map_services.hpp"
#include "kinds/map/write/map_core.hpp"

namespace espalier::bench {
namespace {

class Fills final : public Handler {
 public:
  void done(const Completion& completion) override { failed = failed || !completion.ok; }
  bool failed = false;
};

void fill(const Map& map, const SwitchRunOptions& options) {
  constexpr std::uint64_t kTogether = 4096;
  Pipeline pipeline = value_or_throw(Pipeline::open(map, 64), "no pipeline");
  const std::string value(options.value_bytes, 'v');
  std::vector<std::string> keys;
  Fills fills;
  for (std::uint64_t i = 0; i < options.keys; i += keys.size()) {
    keys.clear();
    while (keys.size() < std::min(kTogether, options.keys - i)) {
      keys.push_back(fmt::format("user{:012}", i + keys.size()));
    }
    std::vector<Request> puts(keys.size());
    for (std::size_t n = 0; n < keys.size(); ++n) {
      puts[n].op = Op::put;
      puts[n].key = keys[n];
      puts[n].value = value;
    }
    pipeline.run(puts, fills);
  }
  if (fills.failed) throw std::runtime_error("cannot fill the map");
}

}  // namespace

OwnNodeMap::OwnNodeMap(const SwitchRunOptions& options, const std::string& fabric) {
  node::Config config = own_node_config();
  config.node.one_sided = true;
  config.node.fabric = fabric;
  node_ = start_own_node(config);
  Store store = value_or_throw(Store::connect(local_address(*node_)), "cannot connect to the node");
  fill(value_or_throw(store.create_map(options.map, {.node_bytes = options.node_bytes}),
                      "cannot create a map"),
       options);
  core_ = value_or_throw(node_->catalog().open<tree::MapCore>(options.map), "no map");
}

OwnLine::OwnLine(const SwitchRunOptions& options)
    : map_(options, "roce+memif:" + path("node")),
      switch_(value_or_throw(
          dataplane::RunningSwitch::open({{path("clients"), path("node")}, path("control")}),
          "no switch")) {
  const dataplane::TableLimits limits{
      .ranges = options.ranges, .sets = options.sets, .nodes_per_set = options.nodes_per_set};
  client::IndexController::Options controlling;
  controlling.node = *client::parse_node_address("roce+memif:" + path("node"));
  controlling.map = options.map;
  controlling.controls = {path("control")};
  controlling.limits = limits;
  controller_ = std::make_unique<client::ControllerThread>(
      std::move(controlling), std::chrono::milliseconds(options.delay_ms));
  while (controller_->rounds() == 0) std::this_thread::yield();
}

const offload::IndexReadCounts& OwnLine::met() const {
  return map_.node().services().part<offload::MapServices>().index_reads;
}

}  // namespace espalier::bench
