// SPDX-License-Identifier: Apache-2.0
// A memory node embedded in a program: the same as `espalier serve`, plus the program's own calls
// and kinds (offload.hpp). Link espalier::node to use it.
//
//   auto node = espalier::Node::start({.values = {{"node.socket", "/run/app/node"}}}, offloads);
//   auto store = espalier::Store::connect(node->address());
//
// It takes the settings of `espalier serve`, and is a device in front of another node if node.place
// says so (docs/configuration.md). It reads neither environment variables nor /etc/espalier, logs
// nothing and handles no signals.
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
  /// A configuration file of `espalier serve`, as text; empty: defaults.
  std::string toml{};
  /// Settings by name, e.g. "node.cores" and "2"; "map" and "peer" may come several times. They
  /// override `toml`.
  std::vector<std::pair<std::string, std::string>> values{};
  /// Called once, by any thread, with the reason when the log of data.dir fails. From then on no
  /// write is acknowledged; reads continue. Empty: no callback.
  std::function<void(const std::string&)> data_failed{};
};

/// Thread: start and stop from one thread at a time; the rest from any.
class Node {
 public:
  /// Starts to serve.
  /// Cost: threads for its workers and helpers, and memory as it is used.
  /// Errors, with words: invalid_argument (all mistakes in the settings or the offloads),
  /// already_exists (another process listens on the address), system (detail: errno), out_of_memory
  /// (memory.limit is too low, or the process has no more), not_permitted, corrupt (data.dir cannot
  /// be used); on a device also those of reaching its host.
  static TableResult<Node> start(const NodeSettings& settings, Offloads offloads = {});
  Node(Node&&) noexcept;
  Node& operator=(Node&&) noexcept;
  /// Stops, as stop().
  ~Node();

  /// The address for clients on this machine: "unix:PATH".
  [[nodiscard]] const std::string& address() const;
  /// The fabric addresses on which it listens, with the ports assigned.
  [[nodiscard]] std::vector<std::string> fabric_addresses() const;
  /// Clients connected now.
  [[nodiscard]] std::uint32_t connections() const;
  /// Shuts down: finishes requests in flight, for up to a second, then closes the connections and
  /// frees all memory. A step that does not return blocks it, and so does a step that waits for
  /// other nodes, until they answer or the wait times out. Does nothing if it has stopped.
  void stop();

 private:
  struct Running;
  explicit Node(std::unique_ptr<Running> running);
  static TableResult<Node> begin(const NodeSettings& settings, Offloads offloads);
  std::unique_ptr<Running> running_;
  std::string address_;
};

}  // namespace espalier
