// SPDX-License-Identifier: Apache-2.0
// A node with a map, and a switch before it with its controller, all in this process.
#pragma once

#include <memory>
#include <string>

#include "base/temporary_folder.hpp"
#include "bench/own_node.hpp"
#include "bench/run_switch.hpp"
#include "dataplane/running_switch.hpp"
#include "espalier/map.hpp"
#include "index/controller/controller_thread.hpp"
#include "kinds/map/offload/index_reads.hpp"

namespace espalier::tree {
class MapCore;
}

namespace espalier::bench {

/// A node with a map of the keys `user000000000000` and so on.
class OwnNodeMap {
 public:
  /// `fabric`: besides its socket; empty: none. Errors: throws std::runtime_error.
  explicit OwnNodeMap(const SwitchRunOptions& options, const std::string& fabric = {});

  [[nodiscard]] node::Node& node() const { return *node_; }
  [[nodiscard]] tree::MapCore& core() const { return *core_; }

 private:
  std::unique_ptr<node::Node> node_;
  std::shared_ptr<tree::MapCore> core_;
};

/// The same with a switch and its controller; the tables are installed when it is made.
class OwnLine {
 public:
  /// Errors: throws std::runtime_error.
  explicit OwnLine(const SwitchRunOptions& options);
  [[nodiscard]] const offload::IndexReadCounts& met() const;
  [[nodiscard]] std::string address() const { return "roce+memif:" + path("clients"); }

 private:
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }

  base::TemporaryFolder folder_;
  OwnNodeMap map_;
  std::unique_ptr<dataplane::RunningSwitch> switch_;
  std::unique_ptr<client::ControllerThread> controller_;
};

}  // namespace espalier::bench
