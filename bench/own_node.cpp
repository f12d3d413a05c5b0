// SPDX-License-Identifier: Apache-2.0
#include "bench/own_node.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "bench/map_session.hpp"

namespace espalier::bench {

std::string fresh_socket() {
  static std::atomic<unsigned> number{0};
  const std::string name = fmt::format("espalier-bench-{}-{}.sock", ::getpid(), number++);
  return (std::filesystem::temp_directory_path() / name).string();
}

node::Config own_node_config(std::uint32_t cores) {
  node::Config config;
  config.node.socket = fresh_socket();
  config.node.cores = cores;
  config.node.pin = true;
  config.maps.clear();
  return config;
}

node::Config spinning_node_config(std::uint32_t cores) {
  node::Config config = own_node_config(cores);
  config.node.spin_us = 1'000'000;
  config.memory.limit = std::uint64_t{64} << 20;
  return config;
}

std::unique_ptr<node::Node> start_own_node(const node::Config& config,
                                           const node::NodeOptions& options) {
  return value_or_throw(node::Node::start(config, options), "cannot start a node");
}

}  // namespace espalier::bench
