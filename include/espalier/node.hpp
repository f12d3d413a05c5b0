// SPDX-License-Identifier: Apache-2.0
// A memory node in a program's own process: what `espalier serve` runs, with calls and kinds of the
// program's own beside those that every node has (offload.hpp). A library of its own,
// espalier::node, has it.
//
//   auto node = espalier::Node::start({.values = {{"node.socket", "/run/app/node"}}}, offloads);
//   auto store = espalier::Store::connect(node->address());
//
// It is told what `espalier serve` is told, and is one device before another node if node.place
// says so (docs/configuration.md); variables of the environment and /etc/espalier it does not read.
// It logs nothing and handles no signals.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "espalier/offload.hpp"
#include "espalier/table_error.hpp"

namespace espalier {

struct NodeSettings {
  /// As the configuration file of `espalier serve` has it; empty: defaults.
  std::string toml{};
  /// Settings by their names, "node.cores" and "2"; "map" and "peer" may come several times. They
  /// come before what `toml` says.
  std::vector<std::pair<std::string, std::string>> values{};
  /// Is told, once and by any thread, why the log of data.dir takes nothing any more: from then on
  /// no write is acknowledged, and what is there is still read. None: no one is told.
  std::function<void(const std::string&)> data_failed{};
};

/// Thread: start and stop one at a time; the rest from any.
class Node {
 public:
  /// Begins to serve. Cost: threads for its workers and helpers, and memory as it is used.
  /// Errors, with words: invalid_argument (all that is wrong with the settings, or with the
  /// offloads), already_exists (somebody listens there), system (detail: errno), out_of_memory
  /// (memory.limit is too little, or the process has no more), not_permitted, corrupt (data.dir
  /// cannot be used); of a device, those of reaching its host.
  static TableResult<Node> start(const NodeSettings& settings, Offloads offloads = {});
  Node(Node&&) noexcept;
  Node& operator=(Node&&) noexcept;
  /// Stops, as stop().
  ~Node();

  /// Where clients of this machine find it: "unix:PATH".
  [[nodiscard]] const std::string& address() const;
  /// Where else it listens, with the ports that it was given.
  [[nodiscard]] std::vector<std::string> fabric_addresses() const;
  /// Clients connected now.
  [[nodiscard]] std::uint32_t connections() const;
  /// What is in flight is finished, for a second; then clients are told, and all memory is given
  /// back. A step that does not return keeps it from stopping, and so does one that waits for other
  /// nodes, until they answer or are given up. Does nothing if it has stopped.
  void stop();

 private:
  struct Running;
  explicit Node(std::unique_ptr<Running> running);
  static TableResult<Node> begin(const NodeSettings& settings, Offloads offloads);
  std::unique_ptr<Running> running_;
  std::string address_;
};

}  // namespace espalier
