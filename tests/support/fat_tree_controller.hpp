// SPDX-License-Identifier: Apache-2.0
// The controller of a FatTree's switches, in a FatTreeWorld: it reads the nodes' trees and mapping
// feeds where they lie, and asks switches by words, as over sockets; one that is down does not
// answer, and one that comes up has forgotten all.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "dataplane/switch_control.hpp"
#include "index/topology_controller.hpp"
#include "tests/support/fat_tree_world.hpp"

namespace espalier::test {

class FatTreeController {
 public:
  FatTreeController(FatTreeWorld& world, const FatTreeWorld::Room& room);
  ~FatTreeController();

  /// A round; the test fails where a node cannot be read.
  place::TopologyController::Round round();
  /// The switch goes down, or comes up without tables.
  void take_down(std::size_t number);
  void bring_up(std::size_t number);
  [[nodiscard]] place::TopologyController& controller() { return *controller_; }
  /// Generations of redirect keys that are good at a node now.
  [[nodiscard]] std::size_t keys_of(std::uint16_t node) const;

 private:
  class Node;
  class Switch;

  FatTreeWorld& world_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Switch>> switches_;
  std::optional<place::TopologyController> controller_;
};

}  // namespace espalier::test
