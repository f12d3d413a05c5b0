// SPDX-License-Identifier: Apache-2.0
// The node that a benchmark starts for itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "node/node.hpp"

namespace espalier::bench {

/// An unused path for a UNIX socket.
[[nodiscard]] std::string fresh_socket();

/// The default configuration of such a node: a socket of its own, workers pinned from the last core
/// on, since clients begin with the first; and no maps.
[[nodiscard]] node::Config own_node_config(std::uint32_t cores = 1);

/// The same with little memory, and workers that spin between two requests: for measurements of
/// rings.
[[nodiscard]] node::Config spinning_node_config(std::uint32_t cores = 1);

/// Errors: throws std::runtime_error with the reason.
[[nodiscard]] std::unique_ptr<node::Node> start_own_node(const node::Config& config,
                                                         const node::NodeOptions& options = {});

/// The address for clients on this machine.
[[nodiscard]] inline std::string local_address(const node::Node& node) {
  return "unix:" + node.config().node.socket;
}

}  // namespace espalier::bench
