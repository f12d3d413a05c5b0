// SPDX-License-Identifier: Apache-2.0
// The controller of a topology's switches (index/topology_controller.hpp) for nodes and switches
// that are reached by their addresses and sockets: round by round it renews the leases of all
// nodes, follows their trees, and has the switches follow. A switch that is gone, or is restarted,
// gets everything when it is back. A node that is gone ends all of it, for the keys that its tables
// write are void: the switches forget the map, and the next round begins anew.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "channel/rings/node_address.hpp"
#include "dataplane/way_tables.hpp"
#include "index/topology_controller.hpp"

namespace espalier::client {

class TopologyRun {
 public:
  struct Options {
    std::vector<NodeAddress> nodes;     ///< by their numbers
    std::vector<std::string> controls;  ///< the sockets of the switches
    dataplane::TopologyBudget budget;   ///< of these, and with a way to each node
    std::string map;
    ConnectOptions connecting{};  ///< with a secret of the role admin, where nodes have secrets
    /// Between two times that trees are read whole, and that nodes are asked what is read most.
    std::uint64_t read_every_ns = 100'000'000;
    std::uint64_t count_every_ns = 1'000'000'000;
  };
  /// A node or a switch that could not be reached, or has refused.
  struct Fault {
    enum class Side : std::uint8_t { node, control };
    Side side = Side::node;
    std::size_t number = 0;  ///< of the node or the switch
    Error error;
    std::string words;  ///< the switch's; empty: none
  };
  using Round = place::TopologyController::Round;

  /// Requires: limits_of() takes the budget.
  explicit TopologyRun(Options options);
  ~TopologyRun();

  /// To be called at least three times a second. Errors: of the node that could not be reached.
  std::expected<Round, Fault> round();
  /// Of switches in the last round that came about, by their numbers.
  [[nodiscard]] std::vector<Fault> faults() const;
  /// Has the switches that can be reached forget the map: nodes answer in their place.
  void clear();
  /// As TopologyController::restart_all, whatever becomes of nodes meanwhile.
  void restart_all(std::function<void(std::size_t number)> restart);
  [[nodiscard]] bool is_restarting() const { return restart_ != nullptr; }

 private:
  class Node;
  class Switch;

  std::optional<Fault> open();
  Fault lose(const Error& error);
  void keep(const Switch* besides = nullptr);

  const Options options_;
  std::vector<std::unique_ptr<Node>> nodes_;  // the first ones; the others are to be opened
  std::optional<Fault> missing_;              // of the next one, that cannot be opened
  std::uint64_t open_rests_ns_ = 0;
  std::uint64_t opens_again_ns_ = 0;
  std::vector<std::unique_ptr<Switch>> switches_;
  std::optional<place::TopologyController> controller_;
  std::function<void(std::size_t)> restart_;  // null: none is to be restarted
  std::size_t next_restart_ = 0;
  bool keeps_ = false;  // it is asking switches, and one of them is waited for
};

}  // namespace espalier::client
